"""The expression of a group: calls ``id()`` of its members, joined by CEL's logical operators.

CEL's own parser reads it, so that precedence, parentheses and errors are CEL's. A value is true
(the member accepts), false, or None (undecided). Evaluation stops when the outcome is known, as in
CEL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.cel.syntax.identifiers import is_identifier
from webhook.constraint.errors import InvalidConstraint
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.cel.syntax.ast import Expr

    Verdict: TypeAlias = bool | None
    """Whether something accepts; None if that is not known."""

_OPERATORS: Final = {"_&&_": "&&", "_||_": "||", "!_": "!", "_==_": "==", "_!=_": "!="}


@dataclass(frozen=True, slots=True)
class Formula:
    """A member (``operator`` is empty), a literal, or an operator with its operands."""

    operator: str
    operands: tuple[Formula, ...] = ()
    member: str = ""
    value: bool = False

    def members(self) -> Iterator[str]:
        """Yields the called members, each as often as it is called."""
        if self.member:
            yield self.member
        for operand in self.operands:
            yield from operand.members()

    def limiting_members(self, *, is_negated: bool = False) -> Iterator[str]:
        """Yields the members whose acceptance can make the formula false."""
        if self.member and is_negated:
            yield self.member
        for operand in self.operands:
            if self.operator in ("==", "!="):
                yield from operand.members()
            else:
                negated = is_negated is not (self.operator == "!")
                yield from operand.limiting_members(is_negated=negated)

    def verdict(self, ask: Callable[[str], Verdict]) -> Verdict:
        """Evaluates the formula; calls ``ask`` for members from left to right, while they matter."""
        match self.operator:
            case "":
                return ask(self.member) if self.member else self.value
            case "!":
                inner = self.operands[0].verdict(ask)
                return None if inner is None else not inner
            case "&&" | "||":
                return self._of_chain(ask, settles=self.operator == "||")
        left, right = (operand.verdict(ask) for operand in self.operands)
        if left is None or right is None:
            return None
        return (left is right) is (self.operator == "==")

    def _of_chain(self, ask: Callable[[str], Verdict], *, settles: bool) -> Verdict:
        outcome: Verdict = not settles
        for operand in self.operands:
            verdict = operand.verdict(ask)
            if verdict is settles:
                return settles
            if verdict is None:
                outcome = None
        return outcome


def read_formula(source: str) -> Formula:
    """Reads an expression; raises :class:`~webhook.constraint.errors.InvalidConstraint`."""
    # Imported here: most clusters have no groups, and CEL takes 9 ms of a start.
    from webhook.cel.errors import ParseError  # noqa: PLC0415
    from webhook.cel.syntax.parser import parse  # noqa: PLC0415

    try:
        return _read(parse(source).root)
    except ParseError as error:
        raise InvalidConstraint(f"invalid spec.expression: {error}") from None


def _read(node: Expr) -> Formula:
    from webhook.cel.syntax.ast import Call, Constant  # noqa: PLC0415  # as above

    if isinstance(node, Constant) and type(node.value) is bool:
        return Formula("", value=node.value)
    if isinstance(node, Call) and node.target is None:
        if node.function in _OPERATORS:
            return Formula(_OPERATORS[node.function], tuple(map(_read, node.args)))
        if not node.args and is_identifier(node.function):
            return Formula("", member=node.function)
    raise InvalidConstraint(
        f"invalid spec.expression: at character {node.at + 1}: an expression is made of members, "
        "called as id(), and of &&, ||, !, ==, !=, true, false and parentheses"
    )
