"""Which form of a function a call may run, where a checker found that it is one alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.library.all import narrowed
from webhook.cel.run.values import TYPES, Optional

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checked
    from webhook.cel.check.types import Type
    from webhook.cel.library.registry import Operand
    from webhook.cel.syntax.ast import Call

_BY_NAME: Final[dict[str, Operand]] = {
    name: of for of, name in TYPES.items() if of not in {dict, Optional}
}


def called(name: str, node: Call, checked: Checked) -> str:
    """The name in the library of what a call of a function may run."""
    only = checked.only_overload(node)
    return name if only is None else narrowed(name, tuple(map(_operand, only.args)))


def _operand(of: Type) -> Operand:
    """What an overload's operand must be when it is run."""
    if of.name == "list":
        part = _operand(of.parts[0])
        return list if part is None else (part,)
    return _BY_NAME.get(of.name) or (of.name if "." in of.name else None)
