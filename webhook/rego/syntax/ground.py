"""Whether a term is ground: free of variables outside comprehensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.syntax.ast import Array, Call, Object, Ref, Set, TemplateString, Var

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import Term


def is_ground(term: Term) -> bool:
    """Whether the term contains no variable (the head of a reference counts as none).

    OPA holds a call and a template string to be ground when their parts are;
    a comprehension never is.
    """
    if isinstance(term, Var):
        return False
    if isinstance(term, Ref):
        return (isinstance(term.head, Var) or is_ground(term.head)) and all(
            map(is_ground, term.path)
        )
    if isinstance(term, Array | Set):
        return all(map(is_ground, term.items))
    if isinstance(term, Object):
        return all(is_ground(key) and is_ground(value) for key, value in term.items)
    if isinstance(term, Call):
        return all(map(is_ground, term.args))
    return not isinstance(term, TemplateString)
