"""Who asks for a page, and the rights that decide what of it is shown: values."""

from __future__ import annotations

from webhook.values import dataclass


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Visitor:
    """A user as the API server knows one; ``shown`` is the name that a page greets."""

    user: str
    groups: tuple[str, ...] = ()
    shown: str = ""


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Right:
    """What somebody would do: ``resource`` is a plural, an empty ``namespace`` is all of them."""

    group: str
    resource: str
    namespace: str = ""
    verb: str = "list"
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {what}{where}"
