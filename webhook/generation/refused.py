"""Finds what an API server refuses of a policy beside its expressions.

pkg/apis/admissionregistration/validation of Kubernetes; the webhook takes all of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.constraint.names import qualified_name_faults

if TYPE_CHECKING:
    from webhook.constraint.drivers.cel_source import CelSource

_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)

_RESERVED: Final = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|"
    "namespace|return|var|void|while"
)


def fault_of_texts(source: CelSource) -> str:
    """A name or message that no policy may have; or an empty text."""
    for variable in source.variables:
        if not _IDENTIFIER.fullmatch(variable.name) or _RESERVED.fullmatch(variable.name):
            return f'its variable is named "{variable.name}", which is not an identifier of CEL'
    for condition in source.match_conditions:
        faults = qualified_name_faults(condition.name)
        if faults:
            return f'its match condition is named "{condition.name}": {faults[0]}'
    for index, validation in enumerate(source.validations):
        message = validation.message.strip()
        if "\n" in message or "\r" in message:
            return (
                f"the message of validations[{index}] has line breaks, which that of a "
                "ValidatingAdmissionPolicy may not have"
            )
    return ""
