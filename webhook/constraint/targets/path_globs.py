"""Globs over paths of names, including and excluding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webhook.constraint.errors import InvalidConstraint
from webhook.rego.errors import BuiltinError

LIST_SCHEMA = {"type": "array", "items": {"type": "string"}}
"""The schema of a field with such globs."""


def patterns(match: Mapping[str, Any], name: str) -> list[str] | None:
    """Returns the globs of a field of ``spec.match``; None where it is absent.

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
    """Compiles globs into a test of a path.

    Some glob of ``included`` (None for all), none of ``excluded``.

    Syntax of github.com/gobwas/glob: ``*`` and ``?`` stop at the separator, ``**`` does not. Raises
    :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    # Here and not above: most policies have no globs, and this is a family of built-ins.
    from webhook.rego.builtins.globs import compiled  # noqa: PLC0415

    try:
        include = None if included is None else [compiled(glob, separator) for glob in included]
        exclude = [compiled(glob, separator) for glob in excluded or ()]
    except BuiltinError as error:
        raise InvalidConstraint(f"spec.match: {error}") from None

    def selected(path: str) -> bool:
        if include is not None and not any(glob.found_in(path) for glob in include):
            return False
        return not any(glob.found_in(path) for glob in exclude)

    return selected
