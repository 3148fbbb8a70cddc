"""The versions of OPA whose language is spoken.

The language here is OPA 1.22's. ConstraintTemplates are compiled at the level
1.17.1, which is inside Gatekeeper v3.23: what a template's author sees is then what
Gatekeeper shows. Of what else differs, 1.17.1's behaviour is a fault since mended, or a
refusal of what is sound; ``tests/differential/opa_versions.py`` has every difference,
and asks both programs and both levels of ours about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.builtins.registry import Available

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.rego.builtins.registry import Builtin

GATEKEEPER: Final = "1.17.1"
LATEST: Final = "1.22"


def available(added: Mapping[str, Builtin], disabled: Collection[str], level: str) -> Available:
    """The built-ins that exist at a level, with a caller's own."""
    return Available(added, disabled, older=level == GATEKEEPER)
