"""Translates JMESPath in Kyverno's rules to CEL expressions.

A value is a :class:`Term`. A null of JMESPath may be an absent value in CEL; each term has the
condition of its presence. The semantics are those of Kyverno 1.19 and
github.com/kyverno/go-jmespath: a missing key is null within an expression, and an error as the
whole expression.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.cel.syntax.identifiers import is_identifier
from webhook.kyverno.jmespath import CURRENT, QueryNode
from webhook.kyverno.patterns import Unwritable, text_matches, written
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

_FALSE: Final = ("null", "false", "''", "[]", "{}")
"""The values that JMESPath regards as false, as CEL text."""

NUMBER: Final = r"^[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?$"
"""The pattern of a number in Go, as CEL text."""

NO_GLOBS: Final = frozenset(("operation", "namespace", "kind", "apiVersion"))
"""Fields with values without ``*`` and ``?``."""


@dataclass(frozen=True, slots=True)
class Term:
    """A value in CEL.

    ``kind`` is any, string, number, bool, list, map or null. ``there`` is the condition of its
    presence; "" means always. A term of kind any is null if absent. ``path`` is the value as an
    optional. ``reached`` is the condition that every key of a path is present. ``items`` is the
    kind of a list's items.
    """

    text: str
    kind: str = "any"
    there: str = ""
    path: str = ""
    reached: str = ""
    items: str = "any"
    absent: str = ""
    """The condition of a null, without an error, in a parent on the path."""
    is_plain: bool = False
    """Whether the value has no wildcards, and is never false."""
    fixed: Any = field(default=None, compare=False)
    """The value of a literal."""

    @property
    def loose(self) -> str:
        """Returns the value, or null if absent."""
        if self.kind == "any" or not self.there:
            return self.text
        return f"({self.there} ? dyn({self.text}) : dyn(null))"

    @property
    def strict(self) -> str:
        """Returns the value, or an error if a key is missing, as in Kyverno."""
        if self.reached and self.path and not self.absent:
            return f"{self.path}.value()"
        return self.loose if not self.reached else f"({self.reached} ? {self.loose} : {_ERROR})"


_ERROR: Final = "dyn(optional.none().value())"
NULL: Final = Term("null", "null")


def both(*parts: str) -> str:
    """Returns the conjunction of conditions; "" is always true."""
    return " && ".join(dict.fromkeys(filter(None, parts)))


def literal_of(value: Any) -> Term:
    """Returns the term of a value in the policy."""
    kinds = {str: "string", bool: "bool", int: "number", float: "number", type(None): "null"}
    if type(value) is list:
        items = {kinds.get(type(item), "any") for item in value}
        text = f"[{', '.join(f'dyn({literal_of(item).text})' for item in value)}]"
        if len(items) == 1 and items != {"any"}:
            text = f"[{', '.join(literal_of(item).text for item in value)}]"
        return Term(text, "list", items=items.pop() if len(items) == 1 else "any", fixed=value)
    if type(value) is dict:
        pairs = [
            f"{written(str(key))}: dyn({literal_of(item).text})" for key, item in value.items()
        ]
        return Term(f"{{{', '.join(pairs)}}}", "map", fixed=value)
    return Term(written(value), kinds[type(value)], fixed=value)


def false_of(name: str) -> str:
    """Returns the condition that JMESPath regards a value of any kind as false."""
    return f"({' || '.join(f'{name} == {literal}' for literal in _FALSE)})"


class Queries:
    """Writes expressions; each generated name is unique."""

    def __init__(self, *, is_of_pods: bool, is_deleted: bool) -> None:
        self._is_of_pods = is_of_pods
        self._is_deleted = is_deleted
        """Whether rules also match DELETE requests."""
        self._names = 0
        self.elements: list[str] = []
        """The variables of the lists that a rule iterates over, outermost first."""
        self.context: dict[str, Term] = {}
        """The variables of the rule."""

    def name(self) -> str:
        """Returns a new name for CEL."""
        self._names += 1
        return f"x{self._names}"

    def bound(self, text: str, write: Callable[[str], str]) -> str:
        """Returns a condition on a value whose text is written only once."""
        if text.isascii() and text.isidentifier():
            return write(text)
        name = self.name()
        return f"[dyn({text})].exists({name}, {write(name)})"

    def term(self, node: QueryNode, at: Term | None = None) -> Term:
        """Translates an expression on a value; without a value, on Kyverno's whole context.

        Raises :class:`~webhook.kyverno.patterns.Unwritable`.
        """
        write: dict[str, Callable[[QueryNode, Term | None], Term]] = {
            "field": self._field,
            "sub": self._sub,
            "index": self._index,
            "flatten": self._flat,
            "project": self._project,
            "filter": self._filter,
            "values": self._values,
            "pipe": self._pipe,
            "or": self._or,
            "and": self._and,
            "not": lambda node, at: Term(f"!({self.truth(self.term(node.parts[0], at))})", "bool"),
            "compare": self._compare,
            "call": self._call,
            "list": self._list,
            "text": lambda node, _: self._text(node),
            "literal": lambda node, _: literal_of(node.value),
        }
        if node is CURRENT or node.kind == "current":
            if at is None:
                raise Unwritable("@ where there is no value")
            return at
        if node.kind not in write:
            raise Unwritable(f"JMESPath: a {node.kind} is not written in CEL")
        return write[node.kind](node, at)

    def truth(self, term: Term) -> str:
        """Returns the condition that JMESPath regards a value as true."""
        if term.kind == "bool":
            return both(term.there, term.text)
        if term.kind in {"number", "null"}:
            return "false" if term.kind == "null" else term.there or "true"
        if term.kind == "string":
            return both(term.there, f"{term.text} != ''")
        if term.kind in {"list", "map"}:
            return both(term.there, f"size({term.text}) > 0")
        return self.bound(term.text, lambda name: f"!{false_of(name)}")

    # --- paths ------------------------------------------------------------------------------------

    def _field(self, node: QueryNode, at: Term | None) -> Term:
        name = node.value
        if at is None:
            return self._known(name)
        if at.kind == "request":
            return self._of_request(name)
        if at.kind == "object" and name in {"spec", "metadata"}:
            return self._certain(at, name)
        if at.kind in {"any", "map", "object"}:
            base = at.path or at.text
            path = f"{base}.?{name}" if is_identifier(name) else f"{base}[?{written(name)}]"
            term = _at_path(path, is_plain=name in NO_GLOBS)
            if not at.absent:
                return term
            reached = both(at.reached, f"({at.absent} || {term.reached})")
            return replace(term, reached=reached, absent=at.absent)
        return NULL

    def _known(self, name: str) -> Term:
        if name == "request":
            return Term("request", "request")
        if name in self.context:
            return self.context[name]
        if name == "element" and self.elements:
            return Term(self.elements[-1])
        if (match := re.fullmatch(r"element([0-9]+)", name)) and int(match[1]) < len(self.elements):
            return Term(self.elements[int(match[1])])
        if not name.isidentifier():  # A quoted name: Kyverno has no variable of such a name.
            return Term("null", reached="false")
        raise Unwritable(f"the variable {name}")

    def _of_request(self, name: str) -> Term:
        if name == "object":
            text = (
                "(request.operation != 'DELETE' ? object : oldObject)"
                if self._is_deleted
                else "object"
            )
            return Term(text, "object")
        if name == "oldObject":
            return Term("oldObject", "object")
        if name == "operation":
            return Term("request.operation", "string", is_plain=True)
        if name in {"namespace", "name"}:
            return replace(_at_path(f"request.?{name}"), is_plain=name in NO_GLOBS)
        if name == "userInfo":
            return Term("request.userInfo", "map")
        raise Unwritable(f"the variable request.{name}")

    def _certain(self, at: Term, name: str) -> Term:
        """Returns metadata or spec, in the form that autogen can rewrite for pod controllers."""
        if at.text == "oldObject":
            old = f"(has(oldObject.{name}) ? oldObject.{name} : {{}})"
            text = f"(oldObject != {{}} ? {old} : {{}})"
            return Term(text, "map", absent="oldObject == {}")
        texts = [
            f"(has({variable}.{name}) ? {variable}.{name} : {{}})"
            if (name == "metadata") is self._is_of_pods
            else f"{variable}.{name}"
            for variable in ("object", "oldObject")
        ]
        if self._is_deleted:
            return Term(f"(request.operation != 'DELETE' ? {texts[0]} : {texts[1]})", "map")
        return Term(texts[0], "map")

    def _sub(self, node: QueryNode, at: Term | None) -> Term:
        left, right = self.term(node.parts[0], at), node.parts[1]
        if left.kind == "null":
            return NULL
        if right.kind in {"field", "sub", "index"} and _is_path(right):
            return self.term(right, left)
        if not left.path:
            return self.term(right, left)
        there = f"{left.path}.hasValue()"
        term = self.term(right, Term(f"{left.path}.value()", is_plain=left.is_plain))
        if term.kind == "any":
            return Term(f"({there} ? {term.text} : null)", reached=there)
        return replace(term, there=both(there, term.there), reached=there, path="")

    def _index(self, node: QueryNode, at: Term | None) -> Term:
        left = self.term(node.parts[0], at)
        if node.value < 0:
            raise Unwritable(f"JMESPath: the index {node.value} counts from the end")
        base = left.path or (f"({left.there} ? {left.text} : [])" if left.there else left.text)
        path = f"{base}[?{node.value}]"
        there = f"{path}.hasValue()"
        return Term(f"{path}.orValue(null)", path=path, reached=left.reached, absent=f"!{there}")

    # --- lists ------------------------------------------------------------------------------------

    def _as_list(self, term: Term) -> Term:
        """Returns a value as a list, absent if it is no list."""
        if term.kind == "list":
            return replace(term, reached="", path="")
        if term.kind != "any":
            return NULL
        if term.path:
            return Term(f"{term.path}.orValue([])", "list", f"type({term.text}) == list")
        return Term(term.text, "list", f"type({term.text}) == list")

    def _flat(self, node: QueryNode, at: Term | None) -> Term:
        items = self._as_list(self.term(node.parts[0], at))
        if items.kind == "null" or items.items not in {"any", "list"}:
            return items
        return replace(items, text=f"dyn({items.text}.flatten())", items="any")

    def _project(self, node: QueryNode, at: Term | None) -> Term:
        return self._projected(self._as_list(self.term(node.parts[0], at)), node.parts[1])

    def _filter(self, node: QueryNode, at: Term | None) -> Term:
        items, name = self._as_list(self.term(node.parts[0], at)), self.name()
        if items.kind == "null":
            return NULL
        held = self.truth(self.term(node.parts[1], Term(name, items.items)))
        kept = replace(items, text=f"{items.text}.filter({name}, {held})")
        return self._projected(kept, node.parts[2])

    def _values(self, node: QueryNode, at: Term | None) -> Term:
        left, name = self.term(node.parts[0], at), self.name()
        if left.kind not in {"any", "map"}:
            raise Unwritable("JMESPath: * of what is not a map")
        there = f"type({left.text}) == map" if left.kind == "any" else ""
        base = f"{left.path}.orValue({{}})" if left.path else left.text
        items = Term(f"{base}.map({name}, {base}[{name}])", "list", there)
        return self._projected(items, node.parts[1])

    def _projected(self, items: Term, right: QueryNode) -> Term:
        """Returns a projection: one value for each item, without nulls."""
        if items.kind == "null":
            return NULL
        name = self.name()
        if right.kind == "current":
            if items.items != "any":
                return items
            return replace(items, text=f"{items.text}.filter({name}, {name} != null)")
        term = self.term(right, Term(name, items.items))
        if term.kind == "null":
            return replace(items, text="[]", fixed=None)
        if term.kind == "any":
            other = self.name()
            text = f"{items.text}.map({name}, {term.text}).filter({other}, {other} != null)"
            return Term(text, "list", items.there, is_plain=term.is_plain)
        kept = f"{items.text}.filter({name}, {term.there})" if term.there else items.text
        return Term(f"{kept}.map({name}, {term.text})", "list", items.there, items=term.kind)

    def _list(self, node: QueryNode, at: Term | None) -> Term:
        terms = [self.term(part, at).loose for part in node.parts]
        there = f"{at.text} != null" if at is not None and at.kind == "any" else ""
        return Term(f"[{', '.join(f'dyn({term})' for term in terms)}]", "list", there)

    # --- conditions -------------------------------------------------------------------------------

    def _pipe(self, node: QueryNode, at: Term | None) -> Term:
        left = replace(self.term(node.parts[0], at), reached="")
        return replace(self.term(node.parts[1], left), reached="")

    def _or(self, node: QueryNode, at: Term | None) -> Term:
        left, right = (self.term(part, at) for part in node.parts)
        if left.kind == "string" and left.is_plain and not left.there:
            return left
        if left.kind == "list" and right.kind == "list" and not right.there:
            if right.fixed == []:
                text = f"({left.there} ? {left.text} : [])" if left.there else left.text
                return replace(left, text=text, there="", reached="", path="")
            text = f"({self.truth(left)} ? {left.text} : {right.text})"
            kind = left.items if left.items == right.items else "any"
            return Term(text, "list", items=kind)
        if left.kind == right.kind == "string" and not right.there:
            return Term(f"({self.truth(left)} ? {left.text} : {right.text})", "string")
        if left.kind == "any":
            name = self.name()
            value = f"{false_of(name)} ? dyn({right.loose}) : {name}"
            return Term(f"[dyn({left.text})].map({name}, {value})[0]")
        return Term(f"({self.truth(left)} ? dyn({left.loose}) : dyn({right.loose}))")

    def _and(self, node: QueryNode, at: Term | None) -> Term:
        left, right = (self.term(part, at) for part in node.parts)
        return Term(f"(({self.truth(left)}) && ({self.truth(right)}))", "bool")

    def _compare(self, node: QueryNode, at: Term | None) -> Term:
        left, right = (self.term(part, at) for part in node.parts)
        are_numbers = left.kind == right.kind == "number"
        if "number" in {left.kind, right.kind} and not are_numbers:
            raise Unwritable(f"JMESPath: {node.value} of what may be no number")
        if node.value not in {"==", "!="}:
            if not are_numbers:
                raise Unwritable(f"JMESPath: {node.value} of what may be no number")
            return Term(
                f"({left.text} {node.value} {right.text})", "bool", both(left.there, right.there)
            )
        return Term(f"({left.loose} {node.value} {right.loose})", "bool")

    def _text(self, node: QueryNode) -> Term:
        return joined(
            [part.value if part.kind == "literal" else self.term(part) for part in node.parts]
        )

    # --- functions --------------------------------------------------------------------------------

    def _call(self, node: QueryNode, at: Term | None) -> Term:
        args = [self.term(part, at) for part in node.parts]
        known = _FUNCTIONS.get(node.value)
        if known is None:
            raise Unwritable(f"JMESPath: the function {node.value}")
        count, write = known
        if len(args) != count:
            raise Unwritable(f"JMESPath: {node.value} has {len(args)} arguments")
        return write(self, *args)

    def length(self, of: Term) -> Term:
        """Returns the size of a list, map or text."""
        return Term(f"size({of.loose})", "number")

    def contains(self, of: Term, part: Term) -> Term:
        """Returns whether a list contains an item, or a text another text."""
        if of.kind == "list":
            return Term(f"({part.loose} in {of.loose})", "bool")
        if of.kind == "string":
            return Term(f"{of.loose}.contains({part.loose})", "bool")
        text = self.bound(
            of.text,
            lambda name: (
                f"(type({name}) == string ? {name}.contains({part.loose}) : {part.loose} in {name})"
            ),
        )
        return Term(text, "bool")

    def keys(self, of: Term) -> Term:
        """Returns the keys of a map."""
        name = self.name()
        return Term(f"{of.loose}.map({name}, {name})", "list", items="string")

    def values(self, of: Term) -> Term:
        """Returns the values of a map."""
        name = self.name()
        return Term(f"{of.loose}.map({name}, {of.loose}[{name}])", "list")

    def regex_match(self, pattern: Term, of: Term) -> Term:
        """Returns whether a text or number matches a regular expression."""
        if type(pattern.fixed) is not str:
            raise Unwritable("JMESPath: regex_match of a pattern that is computed")
        return Term(f"{as_text(of)}.matches({written(pattern.fixed)})", "bool")

    def pattern_match(self, pattern: Term, of: Term) -> Term:
        """Returns whether a text matches a pattern with ``*`` and ``?``."""
        if type(pattern.fixed) is not str:
            raise Unwritable("JMESPath: pattern_match of a pattern that is computed")
        return Term(f"({text_matches(as_text(of), pattern.fixed)})", "bool")

    def to_array(self, of: Term) -> Term:
        """Returns a list unchanged, another value as a list of one item."""
        if of.kind == "list" and not of.there:
            return of
        name = self.name()
        text = f"[dyn({of.loose})].map({name}, type({name}) == list ? {name} : [{name}])[0]"
        return Term(text, "list")

    def to_number(self, of: Term) -> Term:
        """Returns a text as a number; null if it is no number."""
        if of.kind == "number":
            return of
        name = self.name()
        value = (
            f"type({name}) == string ? ({name}.matches('{NUMBER}') ? dyn(double({name})) : dyn(null))"
            f" : type({name}) == int || type({name}) == double ? {name} : dyn(null)"
        )
        return Term(f"[dyn({of.loose})].map({name}, {value})[0]")


def _is_path(node: QueryNode) -> bool:
    """Whether an expression consists of fields and indexes only."""
    if node.kind == "sub":
        return all(_is_path(part) for part in node.parts)
    return node.kind in {"field", "current"} or (node.kind == "index" and _is_path(node.parts[0]))


def _at_path(path: str, *, is_plain: bool = False) -> Term:
    return Term(f"{path}.orValue(null)", path=path, reached=f"{path}.hasValue()", is_plain=is_plain)


def as_text(term: Term) -> str:
    """Returns a value as text; an error if the value has no text."""
    return term.loose if term.kind == "string" else f"string({term.loose})"


def joined(parts: list[str | Term]) -> Term:
    """Returns the concatenation of texts and values."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(written(part))
        elif part.kind in {"list", "map", "null", "object"}:
            raise Unwritable(f"a {part.kind} within a text")
        else:
            texts.append(part.strict if part.kind == "string" else f"string({part.strict})")
    return Term(texts[0] if len(texts) == 1 else f"({' + '.join(texts)})", "string")


def _method(name: str, kind: str = "string") -> Callable[..., Term]:
    """Returns the translation of a text function that is a method in CEL."""
    return lambda _, of, *args: Term(
        f"{of.loose}.{name}({', '.join(arg.loose for arg in args)})",
        kind,
        items="string" if kind == "list" else "any",
    )


_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Term]]]] = {
    "length": (1, Queries.length),
    "contains": (2, Queries.contains),
    "keys": (1, Queries.keys),
    "values": (1, Queries.values),
    "starts_with": (2, _method("startsWith", "bool")),
    "ends_with": (2, _method("endsWith", "bool")),
    "to_upper": (1, _method("upperAscii")),
    "to_lower": (1, _method("lowerAscii")),
    "replace_all": (3, _method("replace")),
    "split": (2, _method("split", "list")),
    "sort": (1, lambda _, of: Term(f"{of.loose}.sort()", "list", items=of.items)),
    "regex_match": (2, Queries.regex_match),
    "pattern_match": (2, Queries.pattern_match),
    "to_array": (1, Queries.to_array),
    "to_number": (1, Queries.to_number),
    "base64_decode": (1, lambda _, of: Term(f"string(base64.decode({of.loose}))", "string")),
}
"""The number of arguments of each function, and its translation."""
