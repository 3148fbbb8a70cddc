"""Attacks of strangers on the shipped webhook, with failurePolicy Ignore and Fail."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from loadtest.drill import shipped
from loadtest.drill.attacks import console
from loadtest.drill.attacks.crowding import slow
from loadtest.drill.attacks.large_bodies import keys, text
from loadtest.drill.attacks.review_memory import dense, policies
from loadtest.drill.attacks.review_memory import trying as making
from loadtest.drill.drill import Bystander, Row, is_chosen, library, limited, server
from loadtest.drill.floods import (
    RATIO_MAX,
    SAMPLES_PER_SECOND,
    Flood,
    Stored,
    Tries,
    beside,
    let_in,
    rates,
    trying,
    usual,
    waits,
)
from loadtest.drill.floor import apart, bare
from loadtest.slow_objects import many_capabilities, many_containers
from tests.behaviour.serving import pod, review, thing
from tests.webhook.mutation.documents import assign, label, modify_set

SECONDS = 10
MARKER = "made-up-value-of-a-secret"
LOG_BYTES_MAX = 1_000_000
"""Of what `--log-denies` writes of one Pod, which is a hundred violations of 10 KB at the most."""

LOAD_SECONDS_MAX = 10.0
"""Of a processor: 2,000 mutators in conflict took 72 a rebuild, and take 2."""

ADMIT = f"/v1/admit?timeout={shipped.timeout_seconds()}s"


def run() -> Iterator[Row]:
    """Line by line."""
    for attack in (
        slow_objects,
        crowd,
        bodies,
        memory,
        mutation,
        expansion,
        exemption,
        secret,
        console.run,
        large_policies,
    ):
        yield from attack()


def stored(name: str, how_many: Stored) -> Iterator[Row]:
    """A row for each failurePolicy."""
    yield Row(name, "violations let through (Ignore)", how_many.ignored, 0)
    yield Row(name, "violations let through (Fail)", how_many.failed, 0)


def slow_objects() -> Iterator[Row]:
    """Objects that make their own reviews long, one by one, and 120 at a time."""
    alone = [review(many_containers(3_000)), review(many_capabilities(20_000))]
    name = "3,000 init containers; 20,000 capabilities"
    if is_chosen(name):
        with server(*shipped.flags(), documents=library()) as running, limited(running):
            how_many = let_in(running, Tries(alone, 1, ADMIT))
        yield from stored(name, how_many)
    for size, containers in {"26 KB": 800, "60 KB": 1_840}.items():
        several = [
            review(many_containers(containers), userInfo={"username": f"user-{number % 7}"})
            for number in range(42)
        ]
        name = f"120 threads with violating Pods of {size}"
        tries = Tries(several, 120, ADMIT, SECONDS)
        yield from tried(name, tries)
        yield from tried(f"{name}, open connections", replace(tries, keeps=True))


def tried(name: str, tries: Tries) -> Iterator[Row]:
    """Yields the rows of a flood of violating objects."""
    if not is_chosen(name):
        return
    good, bad = usual(), usual(privileged=True)
    with server(*shipped.flags(), documents=library()) as running, limited(running), apart(running):
        with Bystander(running=running, per_second=SAMPLES_PER_SECOND, good=good, bad=bad) as quiet:
            time.sleep(SECONDS)
        how_many, others = trying(running, tries, good, bad)
    with bare() as at_once, apart(at_once):
        _, floor = trying(at_once, tries, good, bad)
    yield from stored(name, how_many)
    yield from waits(name, quiet, others, floor)
    yield from rates(name, others, floor)
    yield Row(name, "others' violations let through (Ignore)", others.let_in, 0)
    yield Row(name, "others' violations let through (Fail)", others.allowed, 0)
    yield Row(name, "memory", others.peak_mib, shipped.memory_mib(), "MiB")


def flooding(
    name: str, flood: Flood, documents: tuple[str, ...], *, notes: int = 0, kept: bool = False
) -> Iterator[Row]:
    """Yields the rows of a flood; see :func:`~loadtest.drill.floods.beside`."""
    if not is_chosen(name):
        return
    mutates = ("--operation=mutation-webhook",) if "/v1/mutate" in flood.path else ()
    with (
        server(*shipped.flags(), *mutates, documents=documents) as running,
        limited(running),
    ):
        yield from beside(name, running, flood, notes=notes, kept=kept)


def crowd() -> Iterator[Row]:
    """Yields the rows of a user with three namespaces."""
    make, *more = (partial(slow, "mallory", f"namespace-{one}", 3_000) for one in range(3))
    flood = Flood(make, 64, seconds=SECONDS, more=tuple(more))
    for name, sent in {
        "64 connections of one user, slow Pods": flood,
        "64 open connections of one user, slow Pods": replace(flood, keeps=True),
    }.items():
        yield from flooding(name, sent, library())


def bodies() -> Iterator[Row]:
    """Large bodies without credentials."""
    for name, make in {"6 bodies of 450,000 keys": keys, "6 bodies of 38 MiB": text}.items():
        flood = Flood(make, 6, seconds=SECONDS)
        yield from flooding(name, flood, library(), notes=95_000)


def memory() -> Iterator[Row]:
    """Dense reviews, and evaluations that make long ranges."""
    for name, make in {
        "4 dense reviews of 2.9 MB": partial(dense, b"[]"),
        "4 reviews that make ranges": partial(making, "ranges"),
    }.items():
        flood = Flood(make, 4, times=3)
        yield from flooding(name, flood, policies(), kept=True)


def mutation() -> Iterator[Row]:
    """Large Pods to `/v1/mutate`, beside reviews."""
    mutators = [
        *(label(f"l{number}", f"l{number}", "x") for number in range(100)),
        assign("pull", "spec.containers[name: *].imagePullPolicy", "Always"),
    ]
    documents = (*library(), *map(json.dumps, mutators))
    make = partial(slow, "mallory", "shop", 5_000)
    flood = Flood(make, 5, seconds=SECONDS, path="/v1/mutate?timeout=1s")
    yield from flooding("Pods of 5,000 containers to /v1/mutate", flood, documents)
    flood = Flood(partial(slow, "mallory", "shop", 1), 5, seconds=SECONDS, path=flood.path)
    documents = (*library(), *map(json.dumps, chained()))
    yield from flooding("Pods to /v1/mutate and 700 chained mutators", flood, documents)


def chained() -> Iterator[dict[str, Any]]:
    """700 mutators; each waits for the label that the next one sets."""
    for number in range(700):
        match = {"labelSelector": {"matchLabels": {f"l{number - 1}": "x"}}} if number else {}
        yield label(f"m{700 - number:03}", f"l{number}", "x", match=match)


def expansions() -> list[dict[str, Any]]:
    """Two templates a level, 18 levels."""
    return [template(level, side) for level in range(18) for side in "ab"]


def template(level: int, side: str) -> dict[str, Any]:
    """An ExpansionTemplate by which what a level holds implies what the next one does."""
    return {
        "apiVersion": "expansion.gatekeeper.sh/v1alpha1",
        "kind": "ExpansionTemplate",
        "metadata": {"name": f"t{level:02}{side}"},
        "spec": {
            "applyTo": [{"groups": [""], "versions": ["v1"], "kinds": [kind(level)]}],
            "templateSource": "data",
            "generatedGVK": {"group": "", "version": "v1", "kind": kind(level + 1)},
        },
    }


def kind(level: int) -> str:
    """Of what a level holds."""
    return f"Level{level}" if level else "ConfigMap"


def generator() -> bytes:
    """A ConfigMap that would imply half a million objects."""
    document: dict[str, Any] = {}
    for _ in range(20):
        document = {"data": document}
    return json.dumps(review({**thing("ConfigMap", namespace="shop"), **document})).encode()


def expansion() -> Iterator[Row]:
    """Templates by which one object implies half a million, and a chain of 1,500."""
    flood = Flood(generator, 3, seconds=SECONDS)
    chain = [template(level, "a") for level in range(1_500)]
    for name, templates in {
        "ConfigMaps and 36 ExpansionTemplates": expansions(),
        "ConfigMaps and a chain of 1,500 templates": chain,
    }.items():
        documents = (*library(), *map(json.dumps, templates))
        yield from flooding(name, flood, documents)


def exemption() -> Iterator[Row]:
    """The exemption's label by each way to write a Namespace."""
    namespace = thing("Namespace", "sly", labels={"admission.gatekeeper.sh/ignore": "x"})
    with server(*shipped.flags()) as running:
        for part in ("", "status", "finalize"):
            body = review(namespace, operation="UPDATE", subResource=part, oldObject=namespace)
            ignored, failed, _ = let_in(running, Tries([body], path="/v1/admitlabel?timeout=3s"))
            name = f"exemption by namespaces/{part}".rstrip("/")
            yield Row(name, "exemptions let through (Ignore)", ignored, 0)
            yield Row(name, "exemptions let through (Fail)", failed, 0)


def secret() -> Iterator[Row]:
    """Mutators of the wrong type that meet a Secret."""
    applied = {"applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["Secret"]}]}
    document = {**thing("Secret", namespace="shop"), "stringData": {"token": MARKER}}
    flags = (*shipped.flags(), "--operation=mutation-webhook", "--log-mutations")
    for wrong in (
        assign("wrong", "stringData.token[name: x].y", "z"),
        modify_set("wrong", "stringData.token", "merge", ["z"]),
    ):
        wrong["spec"] |= applied
        with server(*flags, documents=(*library(), json.dumps(wrong))) as running:
            answers = [
                running.post(review(document), path).body.decode()
                for path in (ADMIT, "/v1/mutate?timeout=1s")
            ]
            running.admit(pod())
        shown = [*answers, *map(json.dumps, running.events)]
        name = f"a Secret and a mutator of the kind {wrong['kind']}"
        yield Row(name, "values shown", sum(MARKER in text for text in shown), 0)


def large_policies() -> Iterator[Row]:
    """A Config of 60,000 patterns, mutators in conflict, and the log of one Pod."""
    patterns = [f"team-{number}-*" for number in range(60_000)]
    config = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "waddle-system"},
        "spec": {"match": [{"processes": ["*"], "excludedNamespaces": patterns}]},
    }
    several = {
        "a Config of 60,000 patterns": [config],
        "2,000 previewed mutators in conflict": conflicting(),
    }
    log = "--log-denies of a Pod of 3,000"
    if not any(map(is_chosen, (*several, log))):
        return
    none = loaded()
    for name, documents in several.items():
        others = loaded(*map(json.dumps, documents))
        ratio = others.milliseconds(0.99) / none.milliseconds(0.99)
        yield Row(name, "p99 against none", ratio, RATIO_MAX, "times")
        yield Row(name, "violations let through (Ignore)", others.let_in, 0)
        yield Row(name, "violations let through (Fail)", others.allowed, 0)
    with server(*shipped.flags(), documents=library()) as running:
        before = sum(len(json.dumps(event)) for event in running.events)
        running.post(review(many_containers(3_000)), ADMIT)
        running.admit(pod())
    written = sum(len(json.dumps(event)) for event in running.events) - before
    yield Row(log, "bytes written", written, LOG_BYTES_MAX)
    yield Row("2,000 previewed mutators in conflict", "processor", rebuild(), LOAD_SECONDS_MAX, "s")


def loaded(*documents: str) -> Bystander:
    """Returns the measurements of ordinary requests beside these policies."""
    with (
        server(*shipped.flags(), documents=(*library(), *documents)) as running,
        Bystander(
            running=running,
            per_second=SAMPLES_PER_SECOND,
            good=usual(),
            bad=usual(privileged=True),
        ) as others,
    ):
        time.sleep(SECONDS)
    return others


def conflicting() -> Iterator[dict[str, Any]]:
    """2,000 previewed mutators, each in conflict with others."""
    for number in range(2_000):
        place = f"spec.l[name: n{number}].b" if number % 2 else f"spec.l.b{number}"
        document = assign(f"m{number}", place, 1)
        document["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
        yield document


def rebuild() -> float:
    """Seconds of a processor to make a snapshot of previewed mutators that all conflict."""
    from webhook.mutation.registry import Mutators  # noqa: PLC0415  # this line's alone

    mutators = Mutators()
    for document in conflicting():
        mutators.add(document)
    began = time.process_time()
    assert mutators.snapshot.would_conflict
    return time.process_time() - began
