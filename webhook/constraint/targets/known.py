"""The targets that come with the product; those for documents by the command line's short names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.constraint.targets import admission
from webhook.constraint.targets.gcp import GcpTarget
from webhook.constraint.targets.json import JsonTarget
from webhook.constraint.targets.terraform import TerraformTarget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.target import Target
    from webhook.constraint.targets.documents import DocumentTarget

DOCUMENT_TARGETS: Final[Mapping[str, DocumentTarget]] = {
    "json": JsonTarget(),
    "terraform": TerraformTarget(),
    "gcp": GcpTarget(),
}

TARGETS: Final[tuple[Target, ...]] = (admission.AdmissionTarget(), *DOCUMENT_TARGETS.values())
"""All of them; what a template has for admission counts before the rest."""

ADMISSION_ALONE: Final = frozenset({admission.NAME})
"""What a server is asked about."""
