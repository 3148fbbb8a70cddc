"""Keeps the last results of each object until a deciding input changes.

An object is not reviewed again while it, its Namespace and the policies about it are unchanged. The
key of its results is a keyed digest of object and Namespace; the value is JSON. Objects whose
results differ only by the object's name share one value. Policies with more inputs are evaluated in
each sweep: see :meth:`KeptResults.of`.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import random
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.encoding import compact
from webhook.audit.digest_table import OBJECT_DIGEST_BYTES, DigestTable
from webhook.audit.kinds import group_kinds
from webhook.constraint import enforcement
from webhook.constraint.result import Responses, Result
from webhook.constraint.targets import admission

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.audit.scope import Scope
    from webhook.cluster.store import Object
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.driver import Evaluator
    from webhook.constraint.template import Template

    _Policies = tuple[tuple[Evaluator, Constraint], ...]

VERSION_SECONDS: Final = 3600.0
"""The validity of a resource version, in seconds. An API server of a newer release may add defaults
to an object under the same version."""

_NAME: Final = b"\0"
"""Stands for the object's name in kept results: JSON has no such byte."""

_AS_IT_IS: Final = (
    orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)


class _Basis(NamedTuple):
    """The inputs of a kind's results besides the object and its Namespace."""

    resource: Resource
    policies: _Policies
    inventory: Any
    """Synced data, if a policy reads it; else None."""
    stages: tuple[Any, ...]

    def is_same(self, other: _Basis) -> bool:
        """Returns whether all inputs are unchanged.

        Compares policies by identity, since clients make new objects.
        """
        return (
            self.resource == other.resource
            and self.inventory is other.inventory
            and len(self.policies) == len(other.policies)
            and self.stages == other.stages
            and all(
                evaluator is evaluator_before and _is_same(constraint, before)
                for (evaluator, constraint), (evaluator_before, before) in zip(
                    self.policies, other.policies, strict=True
                )
            )
        )


class KeptKind:
    """The kept results of one kind; used by one sweep at a time."""

    def __init__(self, whole: KeptResults, basis: _Basis, *, by_version: bool) -> None:
        """``by_version`` identifies objects by resource version, otherwise by content."""
        self.basis = basis
        self.by_version = by_version
        self.until = (
            time.monotonic() + VERSION_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311  # no secret
            if by_version
            else math.inf
        )
        self._listed = 0
        """The resource version of the last list, as a number, as in every API server."""
        self._whole = whole
        self._hashed = hashlib.blake2b(digest_size=OBJECT_DIGEST_BYTES, key=whole.key)
        self._table = DigestTable()
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._alike: list[Result] = []
        """For each number a result that others are like, but for message and details."""

    def __len__(self) -> int:
        return len(self._table)

    @property
    def memory(self) -> int:
        """Returns the memory of the results, about."""
        return self._table.memory

    def listed(self, version: str) -> None:
        """Takes the resource version of a list.

        A lower version than before means that etcd was restored: versions then repeat with other
        content, and all kept results are dropped.
        """
        number = int(version) if version.isascii() and version.isdecimal() else 0
        if number < self._listed:
            self._whole.bytes -= self.memory
            self._table = DigestTable()
        self._listed = number

    def begin(self) -> None:
        """Begins a sweep of the kind; an unfinished one drops nothing."""
        self._table.begin()

    def digest(self, item: Object) -> bytes | None:
        """Returns the digest of an object with its Namespace.

        None if its results cannot be kept.
        """
        metadata = item["metadata"]
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        if not uid or not version:
            return None
        namespace = self._whole.number(metadata.get("namespace", ""))
        if namespace is None:
            return None
        hashed = self._hashed.copy()
        try:
            hashed.update(f"{namespace}\0{metadata['name']}\0{uid}\0{version}\0".encode())
            if not self.by_version:
                hashed.update(orjson.dumps(item))
        except (TypeError, UnicodeEncodeError, RecursionError):  # no plain JSON
            return None
        digest: bytes = hashed.digest()
        return digest

    def known(self, item: Object) -> bytes | None:
        """Returns the digest of an object with kept results; by version, its metadata is enough."""
        digest = self.digest(item)
        return digest if digest is not None and digest in self._table else None

    def recall(self, digest: bytes, name: str) -> Responses | None:
        """Returns the kept results of an object of this name; None if it must be reviewed."""
        kept = self._table.see(digest)
        if kept is None:
            return None
        evaluated, violations = orjson.loads(kept.replace(_NAME, name.encode()))
        results = tuple(
            self._alike[number]._replace(msg=msg, details=details)
            for number, msg, details in violations
        )
        return Responses(results, evaluated=evaluated, recalled=evaluated)

    def keep(self, digest: bytes, name: str, responses: Responses) -> None:
        """Keeps the results of an object, if they are complete and there is room."""
        if not is_settled(responses) or (responses.results and self.basis.stages):
            return
        written = self._written(responses)
        if written is None:
            return
        kept = written.replace(name.encode(), _NAME) if name else written
        table, whole = self._table, self._whole
        if whole.bytes + table.cost(kept) <= whole.bytes_max:
            before = table.memory
            table.put(digest, kept)
            whole.bytes += table.memory - before

    def end(self) -> None:
        """Ends a sweep of all objects; drops results of absent objects."""
        before = self.memory
        self._table.end()
        self._whole.bytes += self.memory - before

    def _written(self, responses: Responses) -> bytes | None:
        """Returns results as JSON; None if they would not survive the conversion."""
        violations = []
        for result in responses.results:
            alike = (
                result.target,
                result.constraint.key,
                result.enforcement_action,
                result.scoped_actions,
            )
            number = self._numbers.setdefault(alike, len(self._alike))
            if number == len(self._alike):
                self._alike.append(result._replace(msg="", details=None))
            violations.append([number, result.msg, result.details])
        whole = [responses.evaluated, violations]
        try:
            written = orjson.dumps(whole, option=_AS_IT_IS)
            return compact(written) if orjson.loads(written) == whole else None
        except (TypeError, ValueError, RecursionError):
            return None


class KeptResults:
    """The kept results of all kinds, for successive sweeps. Used by one task."""

    def __init__(self, bytes_max: int, by_version: Callable[[], bool]) -> None:
        """``bytes_max`` bounds the memory; objects without room are reviewed in each sweep.

        ``by_version`` returns whether every sink accepts metadata now: then objects of the API
        server's own kinds are identified by their resource version.
        """
        self.bytes_max = bytes_max
        self.bytes = 0
        self.key = os.urandom(32)
        self._by_version = by_version
        self._kinds: dict[GroupVersionKind, KeptKind] = {}
        self._standings: dict[int, tuple[Evaluator, bool, bool]] = {}
        self._namespaces: Mapping[str, Any] = {}
        self._numbers: dict[str, tuple[int, Any]] = {}
        """The Namespaces of kept results, each state with a number."""
        self._numbered = 0
        self._same: set[str] = set()
        self._used: set[int] = set()

    @property
    def objects(self) -> int:
        """Returns the number of objects with kept results."""
        return sum(map(len, self._kinds.values()))

    def begin(self, scope: Scope) -> None:
        """A sweep begins."""
        self._namespaces = scope.snapshot.namespaces
        self._same.clear()
        self._used.clear()

    async def of(self, scope: Scope, resource: Resource) -> KeptKind | None:
        """Returns the kept results of a kind; None if its objects must be reviewed in each sweep.

        These are kinds of objects that imply others, and kinds with certain policies: those that
        call a provider, read the time or random numbers, or belong to a group; policies of the API
        server; and Kyverno's policies that have exceptions or audit annotations, or read more than
        objects. If a policy reads synced data, a change of it drops all results. While there are
        exceptions, or policies of others, results with violations are not kept.
        """
        gvk = resource.gvk
        basis = await self._basis(scope, resource)
        if basis is None:
            self._drop(gvk)
            return None
        kept = self._kinds.get(gvk)
        by_version = is_of_the_api_server(gvk) and self._by_version()
        if (
            kept is None
            or kept.by_version != by_version
            or not kept.basis.is_same(basis)
            or time.monotonic() > kept.until
        ):
            self._drop(gvk)
            kept = self._kinds[gvk] = KeptKind(self, basis, by_version=by_version)
        kept.begin()
        return kept

    def end(self, kinds: Collection[GroupVersionKind]) -> None:
        """Ends a sweep of every kind; drops the results of other kinds."""
        for gvk in self._kinds.keys() - set(kinds):
            self._drop(gvk)
        self._standings = {
            key: standing for key, standing in self._standings.items() if key in self._used
        }
        self._numbers = {
            name: number for name, number in self._numbers.items() if name in self._namespaces
        }

    def number(self, namespace: str) -> int | None:
        """Returns the number of a Namespace's state.

        0 without a Namespace, None if it is unknown.
        """
        if not namespace:
            return 0
        known = self._numbers.get(namespace)
        if known is not None and namespace in self._same:
            return known[0]
        document = self._namespaces.get(namespace)
        if document is None:
            return None
        if known is None or known[1] != document:
            self._numbered += 1
            known = self._numbers[namespace] = (self._numbered, document)
        self._same.add(namespace)
        return known[0]

    def _drop(self, gvk: GroupVersionKind) -> None:
        kept = self._kinds.pop(gvk, None)
        if kept is not None:
            self.bytes -= kept.memory

    async def _basis(self, scope: Scope, resource: Resource) -> _Basis | None:
        gvk, snapshot = resource.gvk, scope.snapshot
        if (
            scope.reports_drift
            or group_kinds(scope.expansion, gvk) != {gvk.group_kind}
            or scope.policies.foreign.reads_more(gvk)
            or set(snapshot.targets) != {admission.NAME}
        ):
            return None
        plan = snapshot.plan(enforcement.AUDIT, admission.NAME, gvk.group_kind)
        if plan.broken:
            return None
        policies = []
        reads_data = False
        for step in plan.steps:
            evaluator = step.entry.evaluator
            if evaluator is None:
                return None
            keeps, reads = await self._standing(evaluator, step.entry.template)
            if not keeps:
                return None
            reads_data = reads_data or reads
            policies += [(evaluator, constraint) for constraint, _ in step.constraints]
        inventory = snapshot.inventory if reads_data else None
        return _Basis(resource, tuple(policies), inventory, scope.policies.stages)

    async def _standing(self, evaluator: Evaluator, template: Template) -> tuple[bool, bool]:
        """Returns whether results of a template can be kept, and whether it reads synced data."""
        self._used.add(id(evaluator))
        known = self._standings.get(id(evaluator))
        if known is None or known[0] is not evaluator:
            # Imported here: without kept results the compiler is not needed.
            from webhook.constraint.drivers.reads import (  # noqa: PLC0415
                dependencies_of_evaluator,
            )

            reads = dependencies_of_evaluator(evaluator, template, None)
            keeps = reads is not None and reads.deterministic and not reads.providers
            is_reader = reads is not None and reads.reads.at("data", "inventory") is not None
            known = self._standings[id(evaluator)] = (evaluator, keeps, is_reader)
            await asyncio.sleep(0)
        return known[1], known[2]


def is_of_the_api_server(gvk: GroupVersionKind) -> bool:
    """Returns whether a kind is the API server's own: equal versions then have equal content.

    Changes by a CustomResourceDefinition, or by a server behind an APIService, keep an object's
    version.
    """
    group = gvk.group
    return gvk.group_kind in BUILTIN_KINDS and ("." not in group or group.endswith(".k8s.io"))


def is_settled(responses: Responses) -> bool:
    """Returns whether results have only violations, so that another review would be equal."""
    return not (
        responses.faults
        or responses.undecided
        or responses.deadline_exceeded
        or responses.excused
        or responses.requests
        or responses.answers
        or responses.remarks
    ) and all(
        result.cause == "violation" and result.excuse is None and not result.existing
        for result in responses.results
    )


def _is_same(first: Constraint, other: Constraint) -> bool:
    return first is other or (first.document is other.document and first == other)
