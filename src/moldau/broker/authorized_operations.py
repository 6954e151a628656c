"""What a client may do, as the bit sets that answers carry: bit N stands for Kafka's ACL operation number N."""

from __future__ import annotations

from moldau.security.acls.vocabulary import SUPPORTED_OPERATIONS, ResourceType, bit_set

NOT_ASKED = -(2**31)  # a client that did not ask learns nothing

# Without an authorizer everybody may do everything that the kind of resource knows.
ON_TOPIC = bit_set(*SUPPORTED_OPERATIONS[ResourceType.TOPIC])
ON_CLUSTER = bit_set(*SUPPORTED_OPERATIONS[ResourceType.CLUSTER])
ON_GROUP = bit_set(*SUPPORTED_OPERATIONS[ResourceType.GROUP])
