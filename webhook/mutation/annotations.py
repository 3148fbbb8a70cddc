"""The annotations that name the mutators of an object; the names are Gatekeeper's."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.mutation.mutator import MutationSource

MUTATIONS: Final = "gatekeeper.sh/mutations"
MUTATION_ID: Final = "gatekeeper.sh/mutation-id"


def names_of(passes: Sequence[Sequence[MutationSource]]) -> str:
    """Returns each mutator that assigned a value, once, in the order of their names."""
    return ", ".join(sorted({str(mutator) for pass_ in passes for mutator in pass_}))


def id_for(passes: Sequence[Sequence[MutationSource]]) -> str:
    """Returns an id of Gatekeeper's form, equal for equal changes by the same mutators.

    A random one would change the object again at every write of it.
    """
    text = "\n".join(", ".join(map(str, pass_)) for pass_ in passes)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def annotated(
    obj: dict[str, Any], passes: Sequence[Sequence[MutationSource]], mutation_id: str
) -> dict[str, Any]:
    """Returns the object with both annotations; an invalid ``annotations`` field is replaced."""
    metadata = obj.get("metadata")
    metadata = metadata if type(metadata) is dict else {}
    known = metadata.get("annotations")
    known = known if type(known) is dict else {}
    annotations = {**known, MUTATIONS: names_of(passes), MUTATION_ID: mutation_id}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}
