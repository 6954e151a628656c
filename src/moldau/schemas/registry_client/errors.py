"""What a registry refuses, in its words, with its code and with what to do next."""

from __future__ import annotations

# By a registry's code, or HTTP's where it gives none.
NEXT = {
    401: "give a login with basic.auth.user.info=user:password, in the URL, or with bearer.auth.token",
    403: "this login has no right to do it: ask who runs the registry",
    404: "is this URL a schema registry's?",
    40401: "register a schema for it first, and look at how subjects are named (TopicNameStrategy: <topic>-value)",
    40402: "ask for `latest`, or list the versions of the subject",
    40403: "it is registered elsewhere or not at all: is this the registry that the producer uses?",
    409: "check it against the subject's versions before registering, or change the subject's compatibility level",
    42201: "the text is no valid schema of its type",
    42205: "the registry's mode forbids it",
}
UNKNOWN_SCHEMA = (404, 40401, 40402, 40403)


class RegistryError(Exception):
    """A registry's refusal: `code` is its own, or HTTP's status."""

    def __init__(self, code: int, words: str, url: str) -> None:
        hint = NEXT.get(code) or NEXT.get(code // 100 if code > 999 else code)
        super().__init__(f"{words} (error {code} of the registry at {url})" + (f"; {hint}" if hint else ""))
        self.code = code
        self.words = words

    @property
    def is_unknown(self) -> bool:
        """The registry works, and it has no such thing."""
        return self.code in UNKNOWN_SCHEMA


class RegistryUnreachable(RegistryError):
    """No URL answered, or none with anything but a passing failure."""

    def __init__(self, words: str, url: str) -> None:
        super().__init__(503, words, url)
        self.args = (f"no schema registry answers at {url}: {words}; is it running, and is schema.registry.url right?",)
