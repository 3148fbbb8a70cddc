"""Stage 1: the base of all readers: the tokens, the current position, and errors.

Parsing is recursive descent. A reader that cannot go on raises :class:`Refused`;
where the grammar is ambiguous, a caller goes back to a remembered place and
tries the other reading. Terms that such a caller may meet twice are remembered
by place, so that going back never costs more than a constant factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from webhook.rego.errors import RegoLoadError
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.lexer import Source, SourceLocation, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.location import Location
    from webhook.rego.syntax.ast import Literal_, RegoVersion, Term

    Parenthesised = dict[int, tuple[Term | Literal_, int, int]]
    """Nodes in parentheses, by their identity: the node, and where these begin and end."""

MAX_DEPTH: Final = 150
"""The deepest nesting of collections, calls, groups and bodies. OPA allows 100 000 steps of its own
parser. Python's stack allows less (1000 frames, about five for a level here and as many in later
stages), and no policy written by a person has been seen beyond 30.
"""

MAX_ELEMENTS: Final = 1000
"""The most elements of one reference, each of which may be an iteration within the elements before
it. A later stage takes half a second to refuse a thousand variables, and a minute for ten thousand.
"""

DEPTH_EXCEEDED: Final = "max parsing recursion depth exceeded"


class Refused(Exception):
    """The tokens cannot be read this way; carries the errors to report if no other way works."""

    def __init__(self, errors: list[RegoLoadError]) -> None:
        super().__init__(errors)
        self.errors = errors


def source_lines(text: str, offset: int) -> tuple[str, ...]:
    """The line of a place, and a caret below it; where there is nothing, the last text before."""
    if not text:
        return ()
    at = min(offset, len(text) - 1)
    while at > 0 and text[at] in " \t\n\r\v\f":
        at -= 1
    begin = max(text.rfind("\n", 0, at + 1), text.rfind("\r", 0, at + 1)) + 1
    ends = [end for end in (text.find("\n", at), text.find("\r", at)) if end >= 0]
    line = text[min(begin, at) : min(ends, default=len(text))]
    shown = line.lstrip("\t")
    indent = max(at - begin - (len(line) - len(shown)), 0)
    return shown, " " * indent + "^"


class Cursor:
    """The position in the tokens, and the facts found so far."""

    def __init__(self, source: Source, keywords: dict[str, int], version: RegoVersion) -> None:
        tokens = tokenize(source, keywords)
        self.source = source
        self.version = version
        self.tokens = tokens
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.newlines = tokens.newlines
        self.i = 0
        self.wildcards = 0
        self.depth = 0
        self.keywords = dict(keywords)
        self.not_bodies = False
        self.logical = False
        self.hints: list[str] = []
        self.errors: list[RegoLoadError] = []
        self.remembered: dict[int, tuple[Term | None, int, int, list[RegoLoadError]]] = {}
        self.groups: Parenthesised = {}

    def group(self, node: Term | Literal_, start: int) -> None:
        """Remembers that parentheses around ``node`` began at this offset and end before here."""
        self.groups[id(node)] = (node, start, self.ends[self.i - 1])

    def add_keywords(self, keywords: dict[str, int]) -> None:
        """Makes these names keywords from here on."""
        names = {name: kind for name, kind in keywords.items() if name not in self.keywords}
        if "every" in names and "in" not in self.keywords:
            names["in"] = t.IN
        self.keywords.update(names)
        self.logical = "and" in self.keywords or "or" in self.keywords
        if not names:
            return
        kinds, texts = self.kinds, self.texts
        for i in range(self.i, len(kinds)):
            if kinds[i] == t.IDENT and texts[i] in names:
                kinds[i] = names[texts[i]]

    def here(self) -> SourceLocation:
        """Returns the location of the current token."""
        i = self.i
        return SourceLocation(self.source, self.starts[i], self.ends[i])

    def at(self, i: int) -> SourceLocation:
        """Returns the location of a token."""
        return SourceLocation(self.source, self.starts[i], self.ends[i])

    def since(self, start: int) -> SourceLocation:
        """Returns the location from an offset to the end of the token before the current token."""
        return SourceLocation(self.source, start, self.ends[self.i - 1])

    def is_name(self, i: int) -> bool:
        """Whether the token may be an element of a reference: a name, or any keyword."""
        kind = self.kinds[i]
        return kind == t.IDENT or t.PACKAGE <= kind <= t.LOGICAL_OR

    def keyword_begins_reference(self) -> bool:
        """Whether the current token is a keyword that a reference begins with, as in ``not.x``."""
        i = self.i
        kinds = self.kinds
        return t.PACKAGE <= kinds[i] <= t.LOGICAL_OR and (
            kinds[i + 1] == t.DOT_ATTACHED or kinds[i + 1] == t.LBRACK_ATTACHED
        )

    def hint(self, text: str) -> None:
        """Remembers advice for the next error."""
        self.hints.append(text)

    def reads_with(self, keywords: dict[str, int], start: int, read: Callable[[], bool]) -> bool:
        """Whether ``read`` would succeed from token ``start`` if these were keywords.

        Nothing is consumed: for advice in errors only.
        """
        kept = self.kinds, self.i, self.wildcards, self.depth, self.hints, self.remembered
        self.kinds = [
            keywords.get(text, kind) if kind == t.IDENT else kind
            for kind, text in zip(self.kinds, self.texts, strict=True)
        ]
        self.i, self.hints, self.remembered = start, [], {}
        try:
            return read()
        except Refused:
            return False
        finally:
            self.kinds, self.i, self.wildcards, self.depth, self.hints, self.remembered = kept

    def error(self, message: str, location: Location | None = None) -> RegoLoadError:
        """Returns the error with the advice collected so far."""
        if self.hints:
            label = "hint" if len(self.hints) == 1 else "hints"
            message = f"{message} ({label}: {', '.join(self.hints)})"
            self.hints = []
        place = location or self.here()
        details = source_lines(self.source.text, place.offset)
        return RegoLoadError("rego_parse_error", message, place, details=details)

    def scan_errors(self) -> list[RegoLoadError]:
        """Returns the lexer's errors at the current token."""
        if self.kinds[self.i] != t.ILLEGAL or not self.texts[self.i]:
            return []
        return [self.error(text) for text in self.texts[self.i].split("\n")]

    def refuse(self, message: str, location: Location | None = None) -> NoReturn:
        """Gives up this reading with a message."""
        errors = self.scan_errors()
        errors.append(self.error(message, location))
        raise Refused(errors)

    def illegal(self, note: str = "") -> NoReturn:
        """Gives up because of the current token."""
        kind = self.kinds[self.i]
        if kind == t.ILLEGAL:
            self.refuse("illegal token")
        noun = "keyword" if t.PACKAGE <= kind <= t.LOGICAL_OR or kind in (t.AND, t.OR) else "token"
        if kind in (t.AND, t.OR):
            noun = "token"
        self.refuse(f"unexpected {t.NAMES[kind]} {noun}" + (f": {note}" if note else ""))

    def enter(self) -> None:
        """Goes one level deeper; the caller leaves the level by ``self.depth -= 1``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(DEPTH_EXCEEDED)
