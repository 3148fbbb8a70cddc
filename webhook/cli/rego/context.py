"""What the command line gives Rego: the language's version, and the runtime."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check.compatibility import LATEST

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import RegoVersion


def version_of(*, v0_compatible: bool) -> RegoVersion:
    """The language that sources are read as."""
    return "v0" if v0_compatible else "v1"


ENVIRONMENT_VARIABLE: Final = "WADDLE_RUNTIME_ENV"
"""Names the variables that policies see, separated by commas. Without it they see all, as OPA's do."""


def runtime() -> dict[str, Any]:
    """What ``opa.runtime()`` gives a policy on the command line, as OPA's own has it."""
    shown = os.environ.get(ENVIRONMENT_VARIABLE)
    names = os.environ if shown is None else shown.split(",")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    return {"env": environment, "version": f"{LATEST}.0", "commit": ""}
