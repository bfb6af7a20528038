"""Subject names and contexts: `:.context:name`, or a name without a context for the default context.

Follows Confluent's qualified subjects. A context name starts with a dot; the default context is ".". `:*:` selects all
contexts. `:.__GLOBAL:` is the scope from which all contexts inherit configuration.
"""

import re
from dataclasses import dataclass
from typing import Final

from headgate.registry import limits
from headgate.registry.errors import InvalidSubject

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
GLOBAL_NAME: Final = "__GLOBAL"
EMPTY_NAME: Final = "__EMPTY"
"""Confluent's clients send this for a subject without a name. It is not a valid subject for a registration."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """A subject in its context. An empty name is the context itself, as a scope of configuration."""

    context: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "Subject":
        """Parse the name from a client. `:.:name` and `name` are the same subject."""
        if text.startswith(":."):
            context, _, name = text[1:].partition(":")
            return cls(context, name)
        return cls(DEFAULT_CONTEXT, text)

    @property
    def qualified(self) -> str:
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"

    @property
    def qualified_context(self) -> str:
        """The prefix of names in its context. It is "" for the default context."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def in_default_context(self) -> bool:
        return self.context == DEFAULT_CONTEXT

    def moved_to(self, context: str) -> "Subject":
        return Subject(context, self.name)

    def sibling(self, text: str) -> "Subject":
        """The subject of a name that is used inside this subject.

        A name without a context belongs to the same context.
        """
        other = Subject.parse(text)
        return other.moved_to(self.context) if other.in_default_context and not text.startswith(":.") else other


def checked_scope(text: str) -> Subject:
    """Parse and check the subject or context of a configuration request."""
    subject = Subject.parse(text)
    if _CONTROL.search(text) or len(text) > limits.SUBJECT_CHARS_MAX or subject.name in (GLOBAL_NAME, EMPTY_NAME):
        raise InvalidSubject(text)
    return subject


def checked(text: str) -> Subject:
    """Parse and check the subject of a registration."""
    subject = checked_scope(text)
    if subject.context == GLOBAL_CONTEXT:
        raise InvalidSubject(text)
    return subject


def context_prefix(context: str) -> str:
    """The subject prefix of a path segment after /contexts/: `.x`, `x` and `:.x:` all return `:.x:`."""
    bare = context.removeprefix(":")
    bare = bare.removesuffix(":")
    if ":" in bare:
        raise InvalidSubject(context)
    if not bare.startswith("."):
        bare = f".{bare}"
    return "" if bare == DEFAULT_CONTEXT else f":{bare}:"
