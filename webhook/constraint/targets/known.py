"""The targets for documents that come with the product, by the short names of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.constraint.targets.gcp import GcpTarget
from webhook.constraint.targets.json import JsonTarget
from webhook.constraint.targets.terraform import TerraformTarget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.targets.documents import DocumentTarget

DOCUMENT_TARGETS: Final[Mapping[str, DocumentTarget]] = {
    "json": JsonTarget(),
    "terraform": TerraformTarget(),
    "gcp": GcpTarget(),
}
