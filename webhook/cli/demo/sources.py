"""Files of the demonstration: in a wheel below this package, in a checkout at their origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

CONTROL_PLANE: Final = "tests/testcluster"
CRDS: Final = ("manifests/crds", "manifests/reports/wgpolicyk8s")

_HERE: Final = Path(__file__).parent


def folder(name: str) -> Path:
    """Returns a folder of the repository by its path in it."""
    shipped = _HERE / "data" / name
    return shipped if shipped.is_dir() else _HERE.parents[2] / name


def crds(folders: Sequence[str] = CRDS) -> list[dict[str, Any]]:
    """Returns the CRDs of policies, statuses and reports."""
    files = [file for name in folders for file in sorted(folder(name).glob("*.yaml"))]
    documents = [document for file in files for document in _read(file)]
    return [crd for crd in documents if crd["kind"] == "CustomResourceDefinition"]


def policies(name: str) -> list[dict[str, Any]]:
    """Returns the templates and constraints of a file beside this module."""
    return list(_read(_HERE / f"{name}.yaml"))


def _read(file: Path) -> Iterator[dict[str, Any]]:
    from webhook.api.documents import read_documents  # noqa: PLC0415  # help needs none of it

    yield from (item.value for item in read_documents(file.read_text(encoding="utf-8")))
