"""The lines written so far, and the comments that are still to be written among them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from webhook.rego.errors import RegoLoadError
    from webhook.rego.format.nodes import CommentNode, Place

_INDENT: Final = "\t"


class UnexpectedComment(Exception):
    """A comment has no place in the layout: what it stands in is written as it was."""


class LayoutFault(Exception):
    """A node that cannot be laid out; the argument says why."""


class Lines:
    """Text with indentation, and the comments left.

    A comment that stands behind something is kept until its line ends; there is room for one.
    """

    def __init__(self, comments: list[CommentNode]) -> None:
        self.comments = comments
        self.faults: list[RegoLoadError | str] = []
        self.level = 0
        self.inline = False
        self.before_end: CommentNode | None = None
        self.delay = False
        self.comment_on_final_line = False
        self._parts: list[str] = []

    def text(self) -> str:
        """All that is written."""
        return "".join(self._parts)

    @property
    def length(self) -> int:
        """A mark for :meth:`truncate`."""
        return len(self._parts)

    def truncate(self, length: int) -> None:
        """Take back what was written since the mark."""
        del self._parts[length:]

    # --- text ------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Add text to the line."""
        self._parts.append(text)

    def start_line(self) -> None:
        """Indent."""
        self.inline = True
        self.write(_INDENT * self.level)

    def end_line(self) -> None:
        """End the line, behind its comment."""
        self.inline = False
        if self.before_end is not None and not self.delay:
            self.write(f" {self.before_end.shown}")
            self.before_end = None
        self.delay = False
        self.write("\n")

    def blank_line(self) -> None:
        """Leave a line out."""
        if self.inline:
            self.end_line()
        self.write("\n")

    def line(self, text: str) -> None:
        """Write a line of its own."""
        if not self.inline:
            self.start_line()
        self.write(text)
        self.end_line()

    def next_line(self) -> None:
        """End the line and begin another."""
        self.end_line()
        self.start_line()

    def up(self) -> None:
        """Indent further."""
        self.level += 1

    def down(self) -> None:
        """Indent less."""
        if self.level == 0:
            raise LayoutFault("negative indentation level")
        self.level -= 1

    @contextmanager
    def closed_by(self, text: str) -> Iterator[None]:
        """End what is written within with ``text``, whatever happens."""
        try:
            yield
        finally:
            self.write(text)

    # --- comments --------------------------------------------------------------------------

    def lose(self, write: Callable[..., None], *args: Any) -> None:
        """Write; where a comment is unexpected, those that are left are lost as OPA loses them."""
        try:
            write(*args)
        except UnexpectedComment:
            self.comments = []
            raise

    def partition(self, row: int) -> tuple[list[CommentNode], CommentNode | None]:
        """The comments before a line and the last one on it, taken from those that are left."""
        before = [one for one in self.comments if one.row < row]
        at = [one for one in self.comments if one.row == row]
        if before or at:
            self.comments = [one for one in self.comments if one.row > row]
        return before, at[-1] if at else None

    def insert(self, row: int) -> None:
        """Write the comments before a line, and keep that on it for its end."""
        before, at = self.partition(row)
        self.write_comments(before)
        if before and row - before[-1].row > 1:
            self.blank_line()
        self.at_end(at)

    def at_end(self, comment: CommentNode | None) -> None:
        """Keep a comment for the end of the line; raises UnexpectedComment if there is one."""
        if self.before_end is None:
            self.before_end = comment
        elif comment is not None:
            self.before_end = None
            raise UnexpectedComment

    def write_comments(self, comments: list[CommentNode]) -> None:
        """Write comments, with a line between those that stood apart, and before metadata."""
        in_metadata = False
        for position, one in enumerate(comments):
            if position > 0:
                previous = comments[position - 1]
                apart = one.row - previous.row or one.col - previous.col
                if apart > 1:
                    self.blank_line()
                    in_metadata = False
                elif apart == 1 and in_metadata and one.is_metadata:
                    self.blank_line()
            in_metadata = in_metadata or one.is_metadata
            self.line(one.shown)

    def unformatted(self, place: Place, comments: list[CommentNode]) -> None:
        """Write a text as it was; ``comments`` are those that were left before it."""
        if not place.text:
            self.comments = []
            raise LayoutFault("original unformatted text is empty")
        last = place.row + place.text.count("\n")
        self.write(place.text)
        remaining = []
        for one in comments:
            if self.comment_on_final_line and one.row == last:
                self.write(f" {one.written}")
            elif one.row >= last:
                remaining.append(one)
        self.comments = remaining


def closing_row(place: Place, opening: str, closing: str, skip: str = "") -> int:
    """The line of the bracket that closes the first one of a text; -1 if there is none.

    ``skip`` is a pair of brackets to step over before. Strings and comments are not told apart.
    """
    text, at, row = place.text, 0, place.row
    if skip:
        at, rows = _closed(text, text.find(skip[0]), *skip)
        row += rows
    at = text.find(opening, at)
    if at < 0:
        return -1
    at, rows = _closed(text, at, opening, closing)
    return row + rows if at < len(text) else -1


def _closed(text: str, at: int, opening: str, closing: str) -> tuple[int, int]:
    """Where the bracket closes that opens at a place, or the text's end, and the lines between."""
    at = at if at >= 0 else len(text)
    depth, rows = 1, 0
    while depth:
        at += 1
        if at >= len(text):
            return at, rows
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
        elif text[at] == "\n":
            rows += 1
    return at, rows
