"""The lines written so far, and the comments that are not written yet."""

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
    """The layout has no place for a comment; the surrounding text is written unformatted."""


class LayoutFault(Exception):
    """A node cannot be laid out; the argument is the reason."""


class Lines:
    """Text with indentation, and the comments that are not written yet.

    A comment behind code is held until the end of its line; there is room for one.
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
        """Returns the written text."""
        return "".join(self._parts)

    @property
    def length(self) -> int:
        """The position for :meth:`truncate`."""
        return len(self._parts)

    def truncate(self, length: int) -> None:
        """Removes text behind a position."""
        del self._parts[length:]

    # --- text ------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Adds text to the line."""
        self._parts.append(text)

    def start_line(self) -> None:
        """Writes the indentation."""
        self.inline = True
        self.write(_INDENT * self.level)

    def end_line(self) -> None:
        """Ends the line, after its comment."""
        self.inline = False
        if self.before_end is not None and not self.delay:
            self.write(f" {self.before_end.shown}")
            self.before_end = None
        self.delay = False
        self.write("\n")

    def blank_line(self) -> None:
        """Ends the line, if it has begun, and leaves an empty one."""
        if self.inline:
            self.end_line()
        self.write("\n")

    def line(self, text: str) -> None:
        """Writes a line of its own."""
        if not self.inline:
            self.start_line()
        self.write(text)
        self.end_line()

    def next_line(self) -> None:
        """Ends the line and begins another."""
        self.end_line()
        self.start_line()

    def up(self) -> None:
        """Indents further."""
        self.level += 1

    def down(self) -> None:
        """Indents less."""
        if self.level == 0:
            raise LayoutFault("negative indentation level")
        self.level -= 1

    @contextmanager
    def closed_by(self, text: str) -> Iterator[None]:
        """Writes ``text`` at the end of the block, also after an exception."""
        try:
            yield
        finally:
            self.write(text)

    # --- comments --------------------------------------------------------------------------

    def attempt(self, write: Callable[..., None], *args: Any) -> None:
        """Calls ``write``; an unexpected comment drops all comments left, as in OPA."""
        try:
            write(*args)
        except UnexpectedComment:
            self.comments = []
            raise

    def partition(self, row: int) -> tuple[list[CommentNode], CommentNode | None]:
        """Takes the comments before a line, and the last comment on it."""
        before = [comment for comment in self.comments if comment.row < row]
        at = [comment for comment in self.comments if comment.row == row]
        if before or at:
            self.comments = [comment for comment in self.comments if comment.row > row]
        return before, at[-1] if at else None

    def insert(self, row: int) -> None:
        """Writes the comments before a line, and holds the comment on it for its end."""
        before, at = self.partition(row)
        self.write_comments(before)
        if before and row - before[-1].row > 1:
            self.blank_line()
        self.at_end(at)

    def at_end(self, comment: CommentNode | None) -> None:
        """Holds a comment for the end of the line; raises UnexpectedComment for a second one."""
        if self.before_end is None:
            self.before_end = comment
        elif comment is not None:
            self.before_end = None
            raise UnexpectedComment

    def write_comments(self, comments: list[CommentNode]) -> None:
        """Writes comments, with blank lines where the source has them and before metadata."""
        in_metadata = False
        for position, comment in enumerate(comments):
            if position > 0:
                previous = comments[position - 1]
                apart = comment.row - previous.row or comment.col - previous.col
                if apart > 1:
                    self.blank_line()
                    in_metadata = False
                elif apart == 1 and in_metadata and comment.is_metadata:
                    self.blank_line()
            in_metadata = in_metadata or comment.is_metadata
            self.line(comment.shown)

    def unformatted(self, place: Place, comments: list[CommentNode]) -> None:
        """Writes a text unformatted; ``comments`` are those that were left before it."""
        if not place.text:
            self.comments = []
            raise LayoutFault("original unformatted text is empty")
        last = place.row + place.text.count("\n")
        self.write(place.text)
        remaining = []
        for comment in comments:
            if self.comment_on_final_line and comment.row == last:
                self.write(f" {comment.written}")
            elif comment.row >= last:
                remaining.append(comment)
        self.comments = remaining


def closing_row(place: Place, opening: str, closing: str, skip: str = "") -> int:
    """Returns the line of the bracket that closes the first one of a text; -1 if none does.

    ``skip`` is a pair of brackets to skip first. Brackets in strings and comments count, too.
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
    """Returns the offset of the closing bracket, or the text's end, and the lines passed."""
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
