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
CLIENT_METRICS_SUBSCRIPTIONS_MAX = 1_000  # each is matched with every client that asks: together some milliseconds
HTTP_CONNECTIONS_MAX = 16  # of scrapers and probes, of which a broker has two or three; one more ends the most idle
HTTP_HEADER_BYTES_MAX = 16 * KIB  # of one request to /metrics: scrapers send 300 bytes, some with a token of some KB
METRICS_CLIENTS_MAX = 2_000  # pairs of a client id and a request that /metrics tells apart: 500 KB of a page, 1 MB here
METRICS_CLIENT_ID_BYTES_MAX = 100  # of a client id there, which may have 32,767; those that begin alike count together
SCHEMA_CHARS_MAX = MIB  # of a schema's text: a record of the registry's topic holds no more by default
SCHEMA_REFERENCES_CHARS_MAX = 8 * MIB  # of all texts that a schema refers to, which are parsed with it each time
JSON_DEPTH_MAX = 200  # of a schema or a value: what handles them recurses, and Python allows a thousand calls
JSON_DIGITS_MAX = 1_000  # of a whole number, as in Java's library: reading one takes time with the square of its length
JSON_PATTERN_STEPS_MAX = 100_000  # of one pattern that looks around, on one text: some milliseconds; others are linear
JSON_PATTERNS_COST_MAX = 5_000_000  # letters of all patterns as often as they repeat: a second, which holds all threads
JSON_MATCHING_MAX = 100_000_000  # letters of patterns for those of one value: some 25 ns each where an automaton grows
JSON_EXPLAINED_MATCHING_MAX = (
    10_000_000  # up to which it is asked for reasons, and nothing is counted if it can't be more
)
JSON_EVALUATIONS_MAX = 200_000  # of schemas, for one value: compiled code does a million in 0.1 s and can't be stopped
JSON_EXPLAINED_EVALUATIONS_MAX = 2_000  # up to which it is asked for reasons: those of all branches cost far more
SCHEMA_STEPS_MAX = 500_000  # of one question about a schema, whose work can grow faster than its text: a second or two
INCOMPATIBILITIES_MAX = 1_000  # that are told of two schemas: nobody reads more, and each is a sentence
AVRO_DEPTH_MAX = 100  # of a value's records, arrays and maps: with the names of branches that is 200 levels of JSON
AVRO_EMPTY_ITEMS_MAX = 10_000  # of a value's arrays that take no bytes, such as nulls: their number alone is memory
AVRO_PLAIN_UNION_TRIES_MAX = 100_000  # of branches for values that name none: nested unions double them at each level
TELEMETRY_CLIENTS_MAX = 16_384  # Kafka's: client instances that may push their own metrics, of which each takes 1 KB
TELEMETRY_CLIENT_TEXT_BYTES_MAX = 1_000  # of a client's id, or its software's name, which may have 32 KB each
TELEMETRY_ELEMENTS_MAX = 100_000  # metrics, points and attributes of one push: a fifth of a second of a thread, 20 MB
TELEMETRY_SERIES_MAX = 50_000  # of all clients' metrics that /metrics shows: 20 MB of a page, and as much here
TELEMETRY_SERIES_PER_CLIENT_MAX = 2_000  # Java's consumer has 60, and three more for each partition
TELEMETRY_SERIES_CHARS_MAX = 1_000  # of a name with its labels; a longer one is left out
TELEMETRY_EXPORT_BYTES_MAX = 16 * MIB  # of pushes that wait to be sent on: who comes when it is full is not sent on
