"""Objects that files define several times: the last definition counts, as for kubectl apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from webhook.api.config import CONFIG, merged
from webhook.policies.manifests import Manifest
from webhook.policy_kinds.known import GROUPS, is_foreign_policy
from webhook.printable import quantity

_SHOWN: Final = 3
"""Objects with several definitions that are named; the others are counted."""


def last_definitions(manifests: Iterable[Manifest]) -> dict[tuple[str, ...], Manifest]:
    """Returns the objects by identity, in the order of their first definitions.

    Two Configs of one name, which policies of a library bring, count as one.
    """
    last: dict[tuple[str, ...], Manifest] = {}
    for manifest in manifests:
        before = last.get(manifest.identity)
        both = None if before is None else _merged(before, manifest)
        last[manifest.identity] = both or manifest
    return last


def repeated(manifests: Iterable[Manifest], *, reviewed: bool) -> list[str]:
    """Returns a warning for each of the first objects with several definitions, and their number.

    Policies come first. With ``reviewed`` each definition of another object is reviewed; without,
    the last one counts for every object.
    """
    definitions: dict[tuple[str, ...], list[Manifest]] = {}
    for manifest in manifests:
        if manifest.identity[3]:
            known = definitions.setdefault(manifest.identity, [])
            if not known or _merged(known[-1], manifest) is None:
                known.append(manifest)
    several = [known for known in definitions.values() if len(known) > 1]
    several.sort(key=lambda known: not _is_policy(known[0]))
    lines = [_line(known, reviewed=reviewed) for known in several[:_SHOWN]]
    if len(several) > _SHOWN:
        rule = (
            "Each definition is reviewed; of a policy the last one counts."
            if reviewed
            else "The last one counts."
        )
        lines.insert(
            0,
            f"{quantity(len(several), 'resource')} are defined more than once, "
            f"{sum(map(len, several))} times together. {rule} Check one folder at a time, "
            f"or look at the first {_SHOWN}:",
        )
    return lines


def _line(known: Sequence[Manifest], *, reviewed: bool) -> str:
    """Returns the warning about an object by its definitions, in the order of reading."""
    first, second = known[:2]
    more = len(known) - 2
    counts = _is_policy(first) or not reviewed
    return (
        f'Resource named "{first.identity[3]}" (from file: "{second.place}") '
        f'is already defined in file: "{first.place}"'
        + (f", and {quantity(more, 'time')} more" if more else "")
        + (f": Waddle uses the one in {known[-1].place}" if counts else "")
    )


def _is_policy(manifest: Manifest) -> bool:
    return manifest.gvk.group in GROUPS or is_foreign_policy(manifest.gvk)


def _merged(first: Manifest, second: Manifest) -> Manifest | None:
    """Merges two Configs that differ in their synced kinds only."""
    if first.gvk != CONFIG or second.gvk != CONFIG:
        return None
    document = merged(first.document, second.document)
    return None if document is None else Manifest(document, first.file, first.line)
