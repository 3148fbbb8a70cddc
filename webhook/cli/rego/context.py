"""What the command line gives Rego: the language's version, and the runtime."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from webhook.rego.check.compatibility import LATEST

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import RegoVersion


def version_of(*, v0_compatible: bool) -> RegoVersion:
    """The language that sources are read as."""
    return "v0" if v0_compatible else "v1"


def runtime() -> dict[str, Any]:
    """What ``opa.runtime()`` gives a policy on the command line, as OPA's own has it."""
    return {"env": dict(os.environ), "version": f"{LATEST}.0", "commit": ""}
