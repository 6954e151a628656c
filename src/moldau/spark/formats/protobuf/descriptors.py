"""Messages from descriptors that were compiled elsewhere: a task has no compiler."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

MESSAGES_MAX = 64


@lru_cache(maxsize=MESSAGES_MAX)
def message_of(descriptors: str, name: str) -> Any:
    """The class of a message by its full name, in a pool of its own."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(base64.b64decode(descriptors)).file:
        file.ClearField("source_code_info")
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
