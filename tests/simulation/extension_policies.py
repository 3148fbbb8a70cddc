"""The mutators and ExpansionTemplates of worlds, and what should be of a set of them at once."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.simulation.api_server import Json
from webhook.api.gvk import gvk_of
from webhook.constraint.expansion import Expansion, ExpansionSet, read_expansion_template
from webhook.mutation.mutator import MODE, PREVIEW
from webhook.mutation.registry import Mutators
from webhook.mutation.snapshot import MutationSnapshot

MUTATIONS = "mutations.gatekeeper.sh"
EXPANSIONS = "expansion.gatekeeper.sh"
EXPANSION = "ExpansionTemplate"

LABEL, ASSIGN = "AssignMetadata", "Assign"
NAMES = {LABEL: ("m0", "m1"), ASSIGN: ("a0", "a1", "a2"), EXPANSION: ("e0", "e1")}
PLURALS = {
    LABEL: (MUTATIONS, LABEL.lower()),
    ASSIGN: (MUTATIONS, ASSIGN.lower()),
    EXPANSION: (EXPANSIONS, "expansiontemplate"),
}
"""Group and plural of each kind."""

PREVIEWED = ("m1", "a2")
"""Mutators that are never applied."""

AGAINST_OTHERS = 2
"""The variant of Assigns whose schemas conflict with those of the others, and of the template that
makes a circle of two."""

BROKEN = 3
"""The variant that cannot be used, after those that can."""

Key = tuple[str, str]
"""Kind and name."""

Version = tuple[str, int]
"""UID and generation; UIDs are counted."""


def extension(kind: str, name: str, variant: int) -> Json:
    """An object of a kind; variants are generations of it."""
    metadata: Json = {"name": name}
    if name in PREVIEWED:
        metadata["annotations"] = {MODE: PREVIEW}
    return {"metadata": metadata, "spec": _SPECS[kind](name, variant)}


def _label(name: str, variant: int) -> Json:
    location = "nowhere" if variant == BROKEN else f"metadata.labels.{name}"
    return {"location": location, "parameters": {"assign": {"value": str(variant)}}}


def _assign(name: str, variant: int) -> Json:
    del name
    location = {AGAINST_OTHERS: "spec.shape[name: x].part", BROKEN: "spec.["}
    return {
        "applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}],
        "location": location.get(variant, "spec.shape.part"),
        "parameters": {"assign": {"value": variant}},
    }


def _expansion(name: str, variant: int) -> Json:
    generator, generated = ("A", "B") if name == "e0" else ("C", "D")
    if name == "e1" and variant == AGAINST_OTHERS:
        generator, generated = "B", "A"
    return {
        "applyTo": [{"groups": ["x"], "versions": ["v1"], "kinds": [generator]}],
        "templateSource": "" if variant == BROKEN else f"spec.of{variant}",
        "generatedGVK": {"group": "x", "version": "v1", "kind": generated},
    }


_SPECS = {LABEL: _label, ASSIGN: _assign, EXPANSION: _expansion}


def is_broken(spec: Mapping[str, Any]) -> bool:
    """Whether that of a mutator or ExpansionTemplate is the one that cannot be used."""
    return spec.get("location") in {"nowhere", "spec.["} or spec.get("templateSource") == ""


class Extensions(NamedTuple):
    """Extensions that a replica knows: in force, previewed, or excluded by conflicts.

    Of a mutator the document, of an ExpansionTemplate its source.
    """

    mutators: dict[Key, Mapping[str, Any]]
    expansions: dict[Key, str]
    kept_out: frozenset[Key]


def extensions_of(mutations: MutationSnapshot, expansion: Expansion) -> Extensions:
    """Returns the extensions of a revision."""
    mutators = (*mutations.mutators, *mutations.previewed)
    parties = {*mutations.conflicts, *mutations.would_conflict}
    resultants = [
        resultant
        for kind in "ABCD"
        for resultant in expansion.expand(
            {
                "apiVersion": "x/v1",
                "kind": kind,
                "metadata": {"name": "x"},
                "spec": {f"of{variant}": {} for variant in range(BROKEN)},
            }
        )
    ]
    return Extensions(
        {(one.id.kind, one.id.name): one.document for one in mutators},
        {(EXPANSION, one.template.name): ".".join(one.template.source) for one in resultants},
        frozenset((one.kind, one.name) for one in parties),
    )


def loaded_at_once(items: Iterable[Json]) -> Extensions:
    """Returns the extensions of sound items, loaded at once; their order does not matter."""
    mutators, expansions = Mutators(), ExpansionSet()
    for item in items:
        if gvk_of(item).group == MUTATIONS:
            mutators.add(item)
        else:
            expansions.add(read_expansion_template(item))
    known = extensions_of(mutators.snapshot, expansions.expansion)
    circle = frozenset((EXPANSION, name) for name in expansions.cyclic)
    return known._replace(kept_out=known.kept_out | circle)


def random_extension(chance: random.Random) -> tuple[str, str, int]:
    """Kind, name and variant of what somebody writes."""
    kind = chance.choice([LABEL, ASSIGN, ASSIGN, EXPANSION])
    variant = BROKEN if chance.random() < 0.15 else chance.randrange(BROKEN)
    return kind, chance.choice(NAMES[kind]), variant


def version_of(item: Mapping[str, Any]) -> Version:
    """An object's state."""
    return item["metadata"]["uid"], item["metadata"]["generation"]
