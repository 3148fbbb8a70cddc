"""The layout of terms: references and calls, collections, comprehensions, template strings.

A comment that a term has no place for makes the surrounding text unformatted. So most parts are
written through ``lines.attempt``, which then drops the comments that are left.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.golang.strings import quote
from webhook.rego.errors import RegoLoadError
from webhook.rego.format.lines import Lines, UnexpectedComment, closing_row
from webhook.rego.format.names import INFIX, arity, text
from webhook.rego.format.nodes import BodyNode, Elements, ExprNode, Place, TermNode, walk
from webhook.rego.syntax.unparse import NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.format.bodies import BodyLayout
    from webhook.rego.format.options import LayoutRules


class TermLayout:
    """Writes terms to the lines; :meth:`term` is the entry, :meth:`bare` leaves comments to its caller."""

    bodies: BodyLayout
    """Set after construction, as the two layouts need each other."""

    def __init__(self, lines: Lines, options: LayoutRules) -> None:
        self.lines = lines
        self.options = options
        self.in_parentheses: TermNode | None = None
        """A term that gets parentheses when it is written."""

    def term(self, term: TermNode) -> None:
        """Writes a term; unformatted if a comment in it has no place, and raises then."""
        lines = self.lines
        if not lines.comments:
            self.bare(term)
            return
        kept, length, level = list(lines.comments), lines.length, lines.level
        try:
            self.bare(term)
        except UnexpectedComment:
            lines.truncate(length)
            lines.level = level
            self._forget_comment_within(term.place)
            lines.unformatted(term.place, kept)
            raise

    def _forget_comment_within(self, place: Place) -> None:
        """Drops the held comment if the unformatted text includes it."""
        held = self.lines.before_end
        if held is not None and place.text and place.row <= held.row <= place.end_row:
            self.lines.before_end = None

    def bare(self, term: TermNode, parentheses: bool = False) -> None:
        """Writes a term; ``parentheses`` is whether an infix call gets them."""
        lines = self.lines
        if self.in_parentheses is term:
            self.in_parentheses = None
            parentheses = True
        lines.attempt(lines.insert, term.place.row)
        if not lines.inline:
            lines.start_line()
        lines.attempt(self._write, term, parentheses)
        if not lines.inline:
            lines.start_line()

    def _write(self, term: TermNode, parentheses: bool) -> None:
        kind, value = term.kind, term.value
        if kind == "call":
            self._call(term, parentheses)
        elif kind == "string":
            self.lines.write(_as_written(term))
        elif kind == "var":
            self.lines.write(_variable_text(value))
        elif kind in _BY_KIND:
            _BY_KIND[kind](self, term)
        else:
            self.lines.write(str(value))

    # --- references and calls --------------------------------------------------------------

    def ref(self, terms: list[TermNode]) -> None:
        """Writes a reference."""
        lines = self.lines
        head, *path = terms
        lines.attempt(self.bare, head, head.kind == "call" and head.place.in_parentheses)
        for step in path:
            if step.kind == "string":
                named = not self._is_bracketed(step.value, step.place.text)
                lines.write(f".{step.value}" if named else f"[{quote(step.value)}]")
            elif step.kind == "var":
                lines.write(f"[{_variable_text(step.value)}]")
            else:
                lines.write("[")
                try:
                    self.term(step)
                except UnexpectedComment:
                    lines.write("\n")  # the bracket would become part of the comment
                lines.write("]")

    def _is_bracketed(self, name: str, written: str) -> bool:
        """Returns whether a name needs brackets, such as a keyword that was quoted."""
        if not NAME.fullmatch(name):
            return True
        return name in self.options.keywords and written.startswith('"')

    def _call(self, term: TermNode, parentheses: bool) -> None:
        """Writes a call: with its operator first, as ``in``, or as another infix operator."""
        lines, terms = self.lines, term.value
        name = text(terms[0])
        symbol = INFIX.get(name)
        if symbol is None:
            self.plain_call(terms)
        elif symbol == "in":
            self.membership(terms, term.place, parentheses=True)
        else:
            if parentheses:
                lines.write("(")
            if self._has_arity(terms, name, term.place):
                lines.attempt(self.bare, terms[1], True)
                lines.write(f" {symbol} ")
                lines.attempt(self.bare, terms[2], True)
                if parentheses:
                    lines.write(")")

    def _has_arity(self, terms: list[TermNode], name: str, place: Place) -> bool:
        """Returns whether a call has the operator's number of operands; reports it if not."""
        if len(terms) - 1 == arity(name):
            return True
        self.refuse_arity(terms[1:], name, place)
        return False

    def refuse_arity(self, operands: list[TermNode], name: str, place: Place) -> None:
        """Reports a call whose number of operands is not the operator's."""
        kinds = ",".join(operand.kind for operand in operands)
        details = (f"have: ({kinds})", f"want: ({','.join(_expected_types(name))})")
        message = f"{name}: arity mismatch"
        location = self._location(place)
        self.lines.faults.append(
            RegoLoadError("rego_type_error", message, location, details=details)
        )

    def _location(self, place: Place) -> Any:
        from webhook.rego.location import Location  # noqa: PLC0415

        return Location(place.source.file, place.row, place.col, place.offset)

    def membership(self, terms: list[TermNode], place: Place, *, parentheses: bool) -> None:
        """Writes ``value in domain``, or ``key, value in domain``."""
        lines = self.lines
        name = text(terms[0])
        if not self._has_arity(terms, name, place):
            return
        *keys, domain = terms[1:]
        bracketed = parentheses and len(keys) > 1
        if bracketed:
            lines.write("(")
        try:
            lines.attempt(self.bare, keys[0], True)
            if len(keys) > 1:
                lines.write(", ")
                lines.attempt(self.bare, keys[1], True)
            lines.write(" in ")
            lines.attempt(self.bare, domain, True)
        finally:
            if bracketed:
                lines.write(")")

    def plain_call(self, terms: list[TermNode]) -> None:
        """Writes a call with its operator first."""
        lines = self.lines
        operator, *args = terms
        kept = list(lines.comments)
        self.ref(operator.value)
        lines.comments = kept  # the operator consumes no comment
        lines.write("(")
        with lines.closed_by(")"):
            lines.attempt(self.listed, args, operator.place, "()", self.element)

    # --- collections -----------------------------------------------------------------------

    def _array_or_set(self, term: TermNode) -> None:
        lines = self.lines
        if term.kind == "set" and not term.value:
            lines.write("set()")
            lines.attempt(lines.insert, closing_row(term.place, "(", ")"))
            return
        brackets = _brackets(term)
        lines.write(brackets[0])
        with lines.closed_by(brackets[1]):
            lines.attempt(self.listed, list(term.value), term.place, brackets, self._item)

    def _object(self, term: TermNode) -> None:
        self.lines.write("{")
        with self.lines.closed_by("}"):
            self.listed(list(term.value), term.place, "{}", self._pair)

    def element(self, term: TermNode) -> None:
        """Writes an operand of a call or of a rule's head."""
        self._wrapped(term, is_union(term) and term.place.in_parentheses)

    def _item(self, term: TermNode) -> None:
        self._wrapped(term, is_union(term))

    def _wrapped(self, term: TermNode, parentheses: bool) -> None:
        if not parentheses:
            self.term(term)
            return
        self.lines.write("(")
        with self.lines.closed_by(")"):
            self.term(term)

    def _pair(self, pair: tuple[TermNode, TermNode]) -> None:
        key, value = pair
        self.lines.attempt(self._key, key)
        self._item(value)

    def _key(self, key: TermNode) -> None:
        lines = self.lines
        union = is_union(key)
        if union:
            lines.write("(")
        self.term(key)
        if union:
            lines.write(")")
        lines.write(": ")

    def listed(
        self, elements: Elements, last: Place, brackets: str, write: Callable[[Any], None]
    ) -> None:
        """Writes elements with commas, on one line or on their original lines."""
        lines = self.lines
        end = closing_row(last, *brackets)
        rows = grouped(elements, last)
        below = False
        if len(rows) == 1:
            if any(last.row < comment.row < end for comment in lines.comments):
                raise UnexpectedComment
            below = bool(elements) and _begins_below(elements[0], last)
        if len(rows) > 1 or below:
            lines.delay = True
            lines.end_line()
            lines.up()
            lines.start_line()
        for row in rows[:-1]:
            lines.attempt(self._row, row, write)
            lines.write(",")
            lines.next_line()
        lines.attempt(self._row, rows[-1], write)
        if len(rows) > 1 or below:
            lines.write(",")
            lines.end_line()
            lines.attempt(lines.insert, end)
            lines.down()
            lines.start_line()

    def _row(self, elements: Elements, write: Callable[[Any], None]) -> None:
        for element in elements[:-1]:
            self.lines.attempt(write, element)
            self.lines.write(", ")
        for element in elements[-1:]:
            write(element)

    # --- comprehensions --------------------------------------------------------------------

    def _comprehension(self, term: TermNode) -> None:
        brackets = _brackets(term)
        self.lines.write(brackets[0])
        with self.lines.closed_by(brackets[1]):
            *keys, head, body = term.value
            for key in keys:
                # The value stays on the line of its key.
                head.place = head.place.on_row(term.place.row)
                self.lines.attempt(self._key, key)
            self._head_and_body(brackets, head, body, term.place)

    def _head_and_body(self, brackets: str, head: TermNode, body: BodyNode, place: Place) -> None:
        lines = self.lines
        if head.place.row > place.row:
            lines.next_line()
        parentheses = head.kind == "call" and (is_union(head) or head.place.in_parentheses)
        lines.attempt(self.bare, head, parentheses)
        lines.write(" |")
        self.bodies.inner_body(brackets, body, head.place, place)

    # --- template strings ------------------------------------------------------------------

    def _template(self, term: TermNode) -> None:
        parts, raw = term.value
        mark = "`" if raw else '"'
        self.lines.write(f"${mark}")
        for position, part in enumerate(parts):
            following = parts[position + 1] if position + 1 < len(parts) else None
            if isinstance(part, ExprNode):
                self._template_expression(part, following)
            else:
                self.lines.write(_template_text(part, raw))
        self.lines.write(mark)

    def _template_expression(self, expr: ExprNode, following: Any) -> None:
        lines = self.lines
        lines.write("{")
        lines.up()
        if lines.before_end is not None:
            lines.next_line()
        elif any(comment.row < expr.place.row for comment in lines.comments):
            before = [comment for comment in lines.comments if comment.row < expr.place.row]
            lines.write(" ")
            lines.inline = True
            lines.write_comments(before)
            lines.comments = lines.comments[len(before) :]
        self.bodies.expr(expr)
        if following is not None:
            before = [comment for comment in lines.comments if comment.row < following.place.row]
            if before:
                lines.end_line()
                lines.write_comments(before)
                lines.comments = lines.comments[len(before) :]
                lines.start_line()
        lines.write("}")
        lines.down()


_BY_KIND: Final[dict[str, Callable[[TermLayout, TermNode], None]]] = {
    "ref": lambda writer, term: writer.ref(term.value),
    "array": TermLayout._array_or_set,  # noqa: SLF001  # the table is the class's
    "set": TermLayout._array_or_set,  # noqa: SLF001
    "object": TermLayout._object,  # noqa: SLF001
    "arraycomprehension": TermLayout._comprehension,  # noqa: SLF001
    "setcomprehension": TermLayout._comprehension,  # noqa: SLF001
    "objectcomprehension": TermLayout._comprehension,  # noqa: SLF001
    "templatestring": TermLayout._template,  # noqa: SLF001
}


def _brackets(term: TermNode) -> str:
    return "[]" if term.kind.startswith("array") else "{}"


def _variable_text(name: str) -> str:
    """Returns the name of a variable in the source: the parser numbers each ``_``."""
    return "_" if name.startswith("$") else name


def is_union(term: TermNode) -> bool:
    """Returns whether a term is ``x | y``, which looks like a comprehension in brackets."""
    return term.kind == "call" and text(term.value[0]) == "or"


def grouped(elements: Elements, last: Place) -> list[Elements]:
    """Returns elements by their original lines; in one group if one of them is generated."""
    if any(map(_is_generated, elements)):
        return [elements]
    elements.sort(key=lambda element: (place_of(element).row, place_of(element).col))
    rows: list[Elements] = []
    row: Elements = []
    for position, element in enumerate(elements):
        place = place_of(element)
        if place.row > last.row and position > 0:
            rows.append(row)
            row = []
        last = place
        row.append(element)
    return [*rows, row]


def place_of(element: Any) -> Place:
    """Returns the place of an element; a pair has the place of its key."""
    place: Place = (element[0] if isinstance(element, tuple) else element).place
    return place


def _is_generated(element: Any) -> bool:
    """Returns whether a part of an element is not in the source; pairs are not checked."""
    if isinstance(element, tuple):
        return False
    terms = (node for node in walk(element) if isinstance(node, TermNode))
    return any(
        term.place.synthetic or (term.kind == "var" and term.value.startswith("__local"))
        for term in terms
    )


def _begins_below(first: Any, whole: Place) -> bool:
    """Returns whether the first element is on a line below the opening bracket."""
    if isinstance(first, ExprNode):
        return False
    before = whole.text.partition(place_of(first).text)[0]
    return len(before) < len(whole.text) and before.find("\n") > 0


def _as_written(term: TermNode) -> str:
    """Returns a string with its original quotes and escapes."""
    written = term.place.text
    if written.startswith("`"):
        return written
    # A text may begin before the string: with `else :=`, for instance.
    mark = written[-1:]
    if mark in {'"', "`"}:
        _, quoted, after = written.partition(mark)
        return quoted + after
    return quote(term.value)


def _template_text(part: TermNode, raw: bool) -> str:
    """Returns the text of a template's literal or scalar part."""
    if part.kind != "string":
        return str(part.value)
    if not part.value:
        return ""
    return _braces_escaped(part.value) if raw else _braces_escaped(quote(part.value))[1:-1]


def _braces_escaped(written: str) -> str:
    return re.sub(r"(?<!\\)\{", r"\\{", written)


def _expected_types(name: str) -> list[str]:
    """Returns the types of an operator's operands, as in OPA's error."""
    if name in {"plus", "mul", "div", "rem"}:
        return ["number", "number"]
    if name == "minus":
        return ["any<number, set[any]>"] * 2
    if name in {"and", "or"}:
        return ["set[any]"] * 2
    return ["any"] * arity(name)
