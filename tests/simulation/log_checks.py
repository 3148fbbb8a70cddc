"""Checks at the end of a world of the decision log."""

import dataclasses
from collections import Counter

import orjson

from tests.simulation.disk import Disk
from tests.simulation.log_offers import Books
from tests.simulation.loop import Loop
from tests.simulation.sinks import Receiver
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.sidecar.dead_letter import SUFFIX

RESENT_SECONDS = 10.0
"""A crash sends again what was taken in the last second before it, by when cursors are saved, or
while a sink was waited for, which are five seconds at most."""


@dataclasses.dataclass
class Ledger:
    """Records of a world for its final checks."""

    loop: Loop
    books: Books
    queued: dict[str, set[int]] = dataclasses.field(default_factory=dict)
    """By process of an exporter: what it took."""
    acknowledged: dict[str, int] = dataclasses.field(default_factory=dict)
    exporters: list[Exporter] = dataclasses.field(default_factory=list)
    crashed: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    """By queue: incarnations that ended by a crash, or whose disk failed, and when."""
    disturbances: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    """When processes were paused, from and to."""
    dropped: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)
    """By sink and incarnation of a sidecar: what its log dropped, as it told."""


def check(ledger: Ledger, receivers: list[Receiver], disks: list[Disk]) -> None:
    """Checks all final conditions."""
    _check_accounts(ledger)
    if wrong := ledger.books.disordered():
        ledger.loop.fail(wrong)
    for receiver in receivers:
        _check_losses(ledger, receiver, disks)
        _check_order(ledger, receiver, disks)


def _check_accounts(ledger: Ledger) -> None:
    for exporter in ledger.exporters:
        counters = exporter.counters
        sums = counters.acknowledged + sum(counters.dropped.values()) + exporter.queued
        if counters.offered != sums:
            ledger.loop.fail(
                f"{exporter.origin.process}: offered {counters.offered}, accounted for {sums}"
            )


def arrived(receiver: Receiver, disks: list[Disk]) -> set[tuple[str, int]]:
    """Returns the records that a sink has taken, or refused and kept as dead letters."""
    return {item[1:3] for item in receiver.taken} | _buried(receiver, disks)


def _buried(receiver: Receiver, disks: list[Disk]) -> set[tuple[str, int]]:
    found = set()
    for disk in disks if receiver.refused else ():
        for path, file in disk.names.items():
            if not path.name.startswith(f"{receiver.name}{SUFFIX}"):
                continue
            for line in bytes(file.data).splitlines():
                try:
                    entry = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue  # what a write that failed, or the power's end, left of one
                record = entry["record"]
                key = (record["process"], record["sequence"])
                refused = orjson.loads(receiver.refused.get(key, b"null"))
                if record == refused and entry["reason"] == "400":
                    found.add(key)
    return found


def _check_losses(ledger: Ledger, receiver: Receiver, disks: list[Disk]) -> None:
    there = arrived(receiver, disks)
    lost_count = sum(count for (name, _), count in ledger.dropped.items() if name == receiver.name)
    for name, until in ledger.acknowledged.items():
        lost = [
            number
            for number in sorted(ledger.queued.get(name, ()))
            if number <= until and (name, number) not in there
        ]
        if len(lost) > lost_count:
            refused = [number for number in lost if (name, number) in receiver.refused]
            ledger.loop.fail(
                f"{receiver.name} never got {name} {lost}, acknowledged to {until}"
                f" ({refused} are no dead letters, {lost_count} are told as dropped)"
            )
        lost_count = max(lost_count - len(lost), 0)
        invented = [
            number
            for _, process, number, _ in receiver.taken
            if process == name and number not in ledger.queued.get(name, ())
        ]
        if invented:
            ledger.loop.fail(f"{receiver.name} got {invented}, which {name} never queued")


def _check_order(ledger: Ledger, receiver: Receiver, disks: list[Disk]) -> None:
    last: dict[tuple[str, str], int] = {}
    first_seen: dict[tuple[str, int], tuple[str, float]] = {}
    for incarnation, name, number, seconds in receiver.taken:
        key = (name, number)
        before = last.get((incarnation, name), 0)
        if number <= before and key not in receiver.unanswered:
            ledger.loop.fail(f"{receiver.name} got {name} {number} after {before}")
        last[incarnation, name] = max(number, before)
        earlier, when = first_seen.setdefault(key, (incarnation, seconds))
        if earlier == incarnation or key in receiver.unanswered:
            continue
        queue = incarnation.partition(":")[2]
        crash = ledger.crashed.get(queue, {}).get(earlier)
        if crash is None:
            ledger.loop.fail(
                f"{receiver.name} got {name} {number} twice, from {earlier} and"
                f" {incarnation}, and nothing crashed"
            )
        elif crash - when > RESENT_SECONDS and not _may_be_unsaved(ledger, disks, when, crash):
            ledger.loop.fail(
                f"{receiver.name} got {name} {number} twice, from {earlier} and"
                f" {incarnation}, {crash - when:.1f} seconds before a crash"
            )


def _may_be_unsaved(ledger: Ledger, disks: list[Disk], start: float, stop: float) -> bool:
    """Whether a cursor may not have been saved between these moments."""
    return any(start <= when <= stop for disk in disks for when in disk.failures) or any(
        begin <= stop and end >= start for begin, end in ledger.disturbances
    )
