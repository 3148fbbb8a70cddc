"""A catalogue: a file that names policies in registries, and the required signatures.

::

    apiVersion: waddle.dev/v1alpha1
    kind: PolicyCatalogue
    sources:
      - name: baseline
        image: registry.example/team/policies:v1
        description: What every cluster has.
        verification: [keys/policy.yaml]
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from webhook.policies.manifests import UnreadableFile, read_values
from webhook.values import dataclass

KIND: Final = "PolicyCatalogue"
API_VERSION: Final = "waddle.dev/v1alpha1"
SOURCES_MAX: Final = 1_000

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_FIELDS: Final = {"name", "image", "description", "verification"}


class InvalidCatalogue(ValueError):
    """A catalogue is invalid or lacks the source; the message names file and field."""


@dataclass(frozen=True, slots=True)
class CatalogueSource:
    """One entry: ``verification`` are paths of VerificationPolicies."""

    name: str
    image: str
    description: str
    verification: tuple[Path, ...]


def source_of(file: Path, name: str) -> CatalogueSource:
    """Returns the source of a name; a reference with a slash is used directly.

    Raises :class:`InvalidCatalogue`: a mistyped name is no image of Docker Hub.
    """
    sources = read_catalogue(file)
    for source in sources:
        if source.name == name:
            return source
    if "/" in name:
        return CatalogueSource(name, name, "", ())
    known = ", ".join(source.name for source in sources)
    raise InvalidCatalogue(f"{file} has no such source: there are {known}")


def read_catalogue(file: Path) -> list[CatalogueSource]:
    """Returns all sources; raises :class:`InvalidCatalogue`."""
    try:
        documents = [value.value for value in read_values(file)]
    except UnreadableFile as error:
        raise InvalidCatalogue(str(error)) from None
    except OSError as error:
        raise InvalidCatalogue(f"{file}: {error.strerror or error}") from None
    if len(documents) != 1 or type(documents[0]) is not dict:
        raise InvalidCatalogue(f"{file}: it has to be one {KIND}")
    (document,) = documents
    if (document.get("apiVersion"), document.get("kind")) != (API_VERSION, KIND):
        raise InvalidCatalogue(f"{file}: it is not a {KIND} of {API_VERSION}")
    items = document.get("sources")
    if type(items) is not list or not 1 <= len(items) <= SOURCES_MAX:
        raise InvalidCatalogue(f"{file}: sources is not a list of 1 to {SOURCES_MAX} entries")
    sources = [_source(file, f"sources[{number}]", item) for number, item in enumerate(items)]
    names = [source.name for source in sources]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidCatalogue(f"{file}: sources has {twice[0]} twice: rename one")
    return sources


def _source(file: Path, where: str, item: Any) -> CatalogueSource:
    if type(item) is not dict:
        raise InvalidCatalogue(f"{file}: {where} is not an object")
    if unknown := sorted(map(str, item.keys() - _FIELDS)):
        raise InvalidCatalogue(f"{file}: unknown field {where}.{unknown[0]}")
    texts = {name: item.get(name, "") for name in ("name", "image", "description")}
    for name, value in texts.items():
        if type(value) is not str or (not value and name != "description"):
            raise InvalidCatalogue(f"{file}: {where}.{name} is missing, or not a string")
    if not _NAME.fullmatch(texts["name"]):
        raise InvalidCatalogue(
            f"{file}: {where}.name is {texts['name']!r}: it has small letters, digits, - and ."
        )
    paths = item.get("verification", [])
    if type(paths) is not list or not all(type(path) is str and path for path in paths):
        raise InvalidCatalogue(f"{file}: {where}.verification is not a list of paths")
    return CatalogueSource(
        texts["name"],
        texts["image"],
        texts["description"],
        tuple(file.parent / path for path in paths),
    )
