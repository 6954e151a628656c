"""Where answers to users differ from Apache Kafka's, and why. `scenario` is the question, and `step` the user."""

from __future__ import annotations

from tests.differential.differences import Difference
from tests.differential.rights.matrix import NOT_AUTHORIZED

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "*",
        "*",
        "*error_message",
        "Apache Kafka says which object of its own was refused, with addresses of brokers; we say what was.",
        theirs=NOT_AUTHORIZED,
    ),
    Difference(
        "Produce *",
        "*",
        "*.error_message",
        "Where Apache Kafka refuses a partition and leaves the message null, we say why.",
        theirs=None,
    ),
    *(
        Difference(
            question,
            "*",
            "*error_message",
            "Apache Kafka refuses with a code and leaves the message null, we say in words what it means.",
            theirs=None,
        )
        for question in ("DescribeClientQuotas *", "DescribeUserScramCredentials *")
    ),
    Difference(
        "Metadata * created",
        "*",
        "topics.*",
        "Apache Kafka says that the topic is unknown and creates it meanwhile; with us it is there when we answer.",
    ),
)
