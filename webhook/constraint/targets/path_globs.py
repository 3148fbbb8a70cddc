"""Globs over paths of names: which are meant, and which of those are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.constraint.errors import InvalidConstraint
from webhook.rego.errors import BuiltinError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LIST_SCHEMA = {"type": "array", "items": {"type": "string"}}
"""What a constraint says of such globs."""


def patterns(match: Mapping[str, Any], name: str) -> list[str] | None:
    """The globs of a field of ``spec.match``, None where it has none.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    given = match.get(name)
    if given is None:
        return None
    if type(given) is not list or not all(type(item) is str for item in given):
        raise InvalidConstraint(f"spec.match.{name} must be an array of strings")
    return given


def compile_globs(
    included: Sequence[str] | None, excluded: Sequence[str] | None, separator: str
) -> Callable[[str], bool]:
    """Whether a path is meant: by any of the first (None for all), and by none of the others.

    In the syntax of github.com/gobwas/glob: ``*`` and ``?`` stop at the separator, ``**`` does
    not. Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    # Here and not above: most policies have no globs, and this is a family of built-ins.
    from webhook.rego.builtins.globs import compiled  # noqa: PLC0415

    try:
        wanted = None if included is None else [compiled(one, separator) for one in included]
        unwanted = [compiled(one, separator) for one in excluded or ()]
    except BuiltinError as error:
        raise InvalidConstraint(f"spec.match: {error}") from None

    def meant(path: str) -> bool:
        if wanted is not None and not any(one.found_in(path) for one in wanted):
            return False
        return not any(one.found_in(path) for one in unwanted)

    return meant
