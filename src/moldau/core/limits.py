"""Every limit in one place, each with its reason."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

FRAME_BYTES_MAX = 100 * MIB  # a client can make us buffer this much per connection; Kafka's socket.request.max.bytes
CONTROL_FRAME_BYTES_MAX = (
    16 * MIB
)  # other requests than Produce hold only names and numbers, which cost more once parsed
CHANNEL_RESPONSE_BYTES_MAX = (
    2 * FRAME_BYTES_MAX
)  # of another broker: what a follower asks for, and then the first batch whatever its size, which came in a frame
TAGGED_FIELDS_MAX = 1_000  # unknown tags are skipped one by one, so their count bounds the time a frame can take
STRING_BYTES_MAX = 32_767  # of the protocol: a length has 16 bits, and compact strings are held to the same
TOPIC_NAME_CHARS_MAX = 249  # a folder name is topic-partition, and file systems allow 255 bytes
SCRAM_SALT_BYTES_MAX = 1_024  # of a credential in the metadata, which every login sends; tools make 26 to 64
JAAS_CHARS_MAX = 1_048_576  # of a configuration value; PLAIN keeps all its users in one, ten thousand are half of that
RECEIVE_BYTES = 256 * KIB  # one scratch buffer per listener, within a core's own cache; a larger frame gets its own
ELEMENTS_MAX = 1_000_000  # of all arrays in a message: an element of three bytes costs a hundred and more once parsed
REQUEST_ELEMENTS_MAX = 50_000  # the same of a request: each costs up to 10 µs, and no broker has so many partitions
PRODUCE_ELEMENTS_MAX = 20_000  # of Produce, which is read on the loop: a megabyte holds no more batches than that
FETCH_SESSION_PARTITIONS_MAX = REQUEST_ELEMENTS_MAX  # of one session: no more than one request could ask for
FETCH_SESSIONS_PARTITIONS_MAX = 500_000  # of all sessions: 150 MB; who has no room for more works without a session
LARGE_REQUEST_BYTES = 32 * KIB  # a longer one, but for records, is read in a thread and answered in parts
LARGE_REQUEST_PART = 100  # elements that a handler gets at a time then: a millisecond or two
LARGE_REQUEST_PART_BYTES = 64 * KIB  # what these may take of the request: some work grows with the length of a name
DECOMPRESSED_BATCH_BYTES_MAX = (
    32 * MIB
)  # what a batch may unfold to when it must be opened; bombs unfold a thousandfold
UNFOLDED_BATCH_BYTES_MAX = (
    8 * MIB
)  # the same of a batch that a client sends, or four times max.message.bytes: 32 MiB of gzip hold others up for 106 ms
PARTITIONS_PER_REQUEST_MAX = 10_000  # Kafka's: each becomes a folder with files, all of them before the reply
REPEATED_QUESTIONS_MAX = 100  # answers can be ten thousand times as long as the question, which no client repeats
COORDINATOR_KEYS_MAX = 10_000  # each key, which may be one byte long, is answered with a sentence
UNFINISHED_FRAMES_BYTES_MAX = 64 * MIB  # all connections together, where queued.max.request.bytes says nothing
GROUP_PROTOCOLS_MAX = 100  # of one member; clients have up to five, and whoever joins is compared with all of them
PATTERN_CHARS_MAX = 4_096  # compiling takes time and memory with the length, most of it for classes of many letters
PATTERN_BYTES_MAX = 4 * MIB  # what one compiled pattern may take; counted repetitions of classes grow quickly
AUTHORIZATION_CACHE_ENTRIES_MAX = 10_000  # answers of the authorizer that are kept: 3 MB, and no more than 10
AUTHORIZATION_CACHE_NAME_CHARS_MAX = TOPIC_NAME_CHARS_MAX  # of a resource whose answer is kept: group ids can be longer
QUOTA_CLIENTS_MAX = 10_000  # whose rates are remembered for each kind of quota: 15 MB, however many client ids come
CLIENT_QUOTAS_PER_REQUEST_MAX = 10_000  # Kafka's, of the keys that one request changes: they are one entry of the log
DELEGATION_TOKENS_PER_SWEEP_MAX = 1_000  # Kafka's, of those that are removed by one entry of the log
DELEGATION_TOKEN_RENEWERS_MAX = 1_000  # of one token: each is a name of up to 32 KB in the metadata of every broker
ACLS_PER_REQUEST_MAX = 10_000  # Kafka's, of those that one request creates or deletes: they are one entry of the log
