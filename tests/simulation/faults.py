"""Faults put into the product by hand: a simulation that does not find them proves nothing.

Each is a change of one function's text, so that it must be looked at again when that changes.
"""

import importlib
import inspect
import sys
import textwrap
from dataclasses import dataclass
from typing import Any, Final

SEEDS_MAX: Final = 10_000
"""Within which each must be found; all but a few are by one of the first few hundred."""


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new`` in a function; ``found_by`` is a seed that finds it."""

    world: str
    module: str
    function: str
    old: str
    new: str
    found_by: int = 0

    def put_in(self) -> None:
        """Replace the function by the faulty one."""
        module = importlib.import_module(self.module)
        owner: Any = module
        *path, name = self.function.split(".")
        for part in path:
            owner = getattr(owner, part)
        function = inspect.getattr_static(owner, name)
        source = textwrap.dedent(inspect.getsource(getattr(function, "fget", function)))
        assert source.count(self.old) == 1, f"{self.function} no longer has {self.old!r} once"
        faulty: dict[str, Any] = {}
        text = "from __future__ import annotations\n" + source.replace(self.old, self.new)
        exec(compile(text, self.module, "exec"), vars(module), faulty)
        setattr(owner, name, faulty[name])
        for other in list(sys.modules.values()):  # who has imported it by its name
            if getattr(other, name, None) is function:
                setattr(other, name, faulty[name])


_SIDECAR: Final = "webhook.decisions.sidecar."

FAULTS: Final[dict[str, Fault]] = {
    "a write that is not synced": Fault(
        "log",
        _SIDECAR + "log",
        "SegmentLog.append",
        "self._file.sync()",
        "pass",
        found_by=43,
    ),
    "a new segment whose name is not synced": Fault(
        "log",
        _SIDECAR + "log",
        "SegmentLog._roll",
        "self.disk.sync_directory(self.directory)",
        "pass",
        found_by=357,
    ),
    "writing on behind a sync that failed": Fault(
        "log",
        _SIDECAR + "log",
        "SegmentLog.append",
        "self._abandon(active)",
        "pass",
        found_by=83,
    ),
    "a cursor saved before the sink has answered": Fault(
        "log",
        _SIDECAR + "drain",
        "Drain._deliver",
        "self._attempt(part)",
        "before, lines_before = self.reader.cursor, self.reader._lines[:]; "
        "self.reader.advance(len(part)); self._save(at_once=True); "
        "self.reader.cursor, self.reader._lines = before, lines_before; self._attempt(part)",
        found_by=109,
    ),
    "an acknowledgement of what was only received": Fault(
        "log",
        _SIDECAR + "streams",
        "Streams.receive",
        "mark.received = sequence",
        "mark.received = mark.durable = sequence",
        found_by=32,
    ),
    "records taken twice": Fault(
        "log",
        _SIDECAR + "streams",
        "Streams.receive",
        "return False",
        "return True",
        found_by=20,
    ),
    "a part of a refused batch in the wrong order": Fault(
        "log",
        _SIDECAR + "drain",
        "Drain._deliver",
        "parts += [part[middle:], part[:middle]]",
        "parts += [part[:middle], part[middle:]]",
        found_by=1379,
    ),
    "a sender that is not woken after it has lost a connection": Fault(
        "log",
        "webhook.decisions.exporter.exporter",
        "Exporter._converse",
        "self._wake.set()",
        "pass",
        found_by=17,
    ),
    "a lock that is kept after an adoption that failed": Fault(
        "log",
        _SIDECAR + "adoption",
        "Adopter._end",
        "self._lock.release()",
        "pass",
        found_by=2457,
    ),
    "a row's record that says what another's does": Fault(
        "log",
        "webhook.decisions.wire.rows",
        "records",
        "_record(common, clock, row)",
        "_record(common, clock, rows[0])",
        found_by=0,
    ),
    "a refused record that is kept nowhere": Fault(
        "log",
        _SIDECAR + "drain",
        "Drain._bury",
        "self._dead_letters.write(line, reason)",
        "pass",
        found_by=54,
    ),
    "a dead letter that is not synced": Fault(
        "log",
        _SIDECAR + "dead_letter",
        "DeadLetters.write",
        "file.sync()",
        "pass",
        found_by=54,
    ),
    "a dead letter on the rest of one that failed": Fault(
        "log",
        _SIDECAR + "dead_letter",
        "DeadLetters.write",
        "self._cut(file)",
        "pass",
        found_by=1814,
    ),
    "a file put in place that is not synced": Fault(
        "log",
        _SIDECAR + "disk",
        "OSDisk.replace",
        "file.sync()",
        "pass",
        found_by=0,
    ),
    "a cursor that is saved when it happens": Fault(
        "log",
        _SIDECAR + "drain",
        "Drain._save",
        "at_once or passed or",
        "passed or 0.1 *",
        found_by=2,
    ),
    "records that wake no sink": Fault(
        "log",
        _SIDECAR + "log",
        "SegmentLog.append",
        "self._changed.notify_all()",
        "pass",
        found_by=2,
    ),
    "decisions that a server's end leaves unsent": Fault(
        "log",
        "webhook.decisions.exporter.exporter",
        "Exporter.drain",
        "while len(self.outbox):",
        "while self.outbox.unsent:",
        found_by=24,
    ),
    "rows that a server's end forgets": Fault(
        "log",
        "webhook.decisions.exporter.exporter",
        "Exporter.drain",
        "self.settle()",
        "pass",
        found_by=15,
    ),
    "a goodbye that is not said": Fault(
        "log",
        "webhook.decisions.exporter.exporter",
        "Exporter._send",
        "await connection.bye(Bye(self._sequence))",
        "pass",
        found_by=14,
    ),
    "a drain that ends before what is in the log is sent": Fault(
        "log",
        _SIDECAR + "drain",
        "Drain._drain",
        "if lines:",
        "if lines and not self._drain_only.is_set():",
        found_by=175,
    ),
    "a goodbye to which nobody listens": Fault(
        "log",
        _SIDECAR + "session",
        "Session.bye",
        "self._intake.finish",
        "(lambda *_: None)",
        found_by=4,
    ),
    "a cursor that is begun anew where the disk fails": Fault(
        "log",
        _SIDECAR + "reader",
        "load_cursor",
        "except (FileNotFoundError,",
        "except (OSError,",
        found_by=360,
    ),
    "a receiver's silence that is a bug": Fault(
        "log",
        "webhook.decisions.exporter.exporter",
        "Exporter._watch_silence",
        "raise ConnectionAbortedError",
        "raise RuntimeError",
        found_by=2,
    ),
    "a list that is not made anew after 410": Fault(
        "cluster",
        "webhook.cluster.reflector",
        "Reflector.run",
        "await self._pause(random.uniform(0, 0.2))",
        "await self._pause(3600.0)",
        found_by=36,
    ),
    "a status that is written without comparing": Fault(
        "cluster",
        "webhook.controllers.status.statuses",
        "overlay_status",
        "return None",
        "pass",
        found_by=1,
    ),
    "a byPod that is taken back by who has not heard": Fault(
        "cluster",
        "webhook.controllers.status.overwrites",
        "Overwrites.until",
        "began = self._doubted.setdefault(subject, now)",
        "return 0.0",
        found_by=150,
    ),
    "an authority that signs before it is trusted": Fault(
        "certificates",
        "webhook.certificates.plan",
        "plan",
        "trusted_seconds >= lifetimes.trust_seconds",
        "True",
    ),
    "an authority that is forgotten while it is served": Fault(
        "certificates",
        "webhook.certificates.plan",
        "_promoted",
        'data[CA_CERTIFICATE] += b"".join(pem_of(item) for item in earlier)',
        "pass",
        found_by=6,
    ),
    "a Secret that is decoded once": Fault(
        "certificates",
        "webhook.certificates.keeper",
        "ServingCertificate._decode",
        "document is not self._decoded[0]",
        "not self._decoded[0]",
    ),
    "a Secret that is written by the plan of another": Fault(
        "certificates",
        "webhook.certificates.keeper",
        "ServingCertificate._write_secret",
        "if data == seen",
        "if True",
    ),
    "what was taken is not served": Fault(
        "cluster",
        "webhook.controllers.apply.publication",
        "ClusterPolicies.publish",
        "self._swap()\n        changed = ",
        "changed = ",
        found_by=1,
    ),
    "a replica that is ready before it has all that there was": Fault(
        "cluster",
        "webhook.controllers.apply.publication",
        "ClusterPolicies.publish",
        "if self.tracker.satisfied:",
        "if True:",
    ),
    "a constraint that says it is enforced though nothing of it is": Fault(
        "cluster",
        "webhook.controllers.status.policy_statuses",
        "policy_status",
        "state.active > 0",
        "True",
        found_by=17,
    ),
    "a watch whose silence is not noticed": Fault(
        "cluster",
        "webhook.cluster.reflector",
        "Reflector._events",
        "inactivity = settings.inactivity_seconds * 2**self._silences_in_row",
        "inactivity = 3600.0",
        found_by=35,
    ),
    "a watch that goes on after etcd was restored": Fault(
        *("cluster", "webhook.cluster.reflector", "Reflector._compare"),
        *("self._take_restore(version) or ", ""),
        found_by=44,
    ),
    "a list of which only the last page counts": Fault(
        "cluster",
        "webhook.cluster.reflector",
        "Reflector._pages",
        "objects += self._items(items)",
        "objects = self._items(items)",
        found_by=14,
    ),
    "a list that ends where its place is forgotten": Fault(
        "cluster",
        "webhook.cluster.reflector",
        "Reflector._pages",
        "objects, size, query, sized = [], 0, dict(self._query), whole",
        "return objects, version",
        found_by=1,
    ),
    "a watch of a definition that went": Fault(
        "cluster",
        "webhook.controllers.follow.following",
        "Following._crds_changed",
        "self._manager.restart(gvk)",
        "self._manager.wake(gvk)",
        found_by=238,
    ),
    "a turn that nobody takes over": Fault(
        "cluster",
        "webhook.controllers.status.aggregation",
        "Aggregation._write",
        "since + TURN_SECONDS * rank",
        "since + 3600.0 * rank",
        found_by=649,
    ),
    "data that stays though it is deleted": Fault(
        "cluster",
        "webhook.controllers.apply.sync",
        "SyncController.data",
        "self._remove(known)",
        "pass",
        found_by=84,
    ),
    "a Namespace that stays though it is deleted": Fault(
        "cluster",
        "webhook.controllers.apply.reconciler",
        "Reconciler._take_object",
        "self._client.set_namespace(name, document)",
        "self._client.set_namespace(name, document or {'metadata': {'uid': ''}})",
        found_by=84,
    ),
    "statuses of a Pod that has failed": Fault(
        "cluster",
        "webhook.controllers.status.orphans",
        "Orphans._settle_one",
        "turn > now",
        "True",
        found_by=102,
    ),
    "a kind that counts as absent though nobody could be asked": Fault(
        "cluster",
        "webhook.watch.manager",
        "Manager.statistics",
        "absent=watch.is_absent",
        "absent=True",
        found_by=5000202,
    ),
    "a definition made anew whose constraints are dropped": Fault(
        "cluster",
        "webhook.watch.manager",
        "Manager.restart",
        "list(watch.objects), None",
        "list(watch.objects), None; watch.drop()",
        found_by=4000661,
    ),
    "a mutator that stays though it is deleted": Fault(
        "extensions",
        "webhook.controllers.apply.extension_strategies",
        "MutatorStrategy.remove",
        "self._mutators.remove(MutatorId(*key))",
        "pass",
        found_by=11,
    ),
    "a circle of expansions that stays though it is broken": Fault(
        "extensions",
        "webhook.constraint.expansion",
        "ExpansionSet.remove",
        "self._expansion = None",
        "pass",
        found_by=36,
    ),
    "a conflict that stays though one of its mutators went": Fault(
        "extensions",
        "webhook.mutation.registry",
        "Mutators._unbind",
        "self._schemas.pop(binding, None)",
        "pass",
        found_by=16,
    ),
    "a last good mutator that says nothing of it is in force": Fault(
        "extensions",
        "webhook.controllers.apply.extensions",
        "ExtensionController.take",
        "replace(before, document=document)",
        "ExtensionState(document)",
        found_by=14,
    ),
    "a conflict that the other mutator does not tell of": Fault(
        "extensions",
        "webhook.controllers.apply.extensions",
        "ExtensionController.published",
        "before.get(key) != self._shared.get(key)",
        "False",
        found_by=16,
    ),
    "a previewed mutator that says it is enforced": Fault(
        "extensions",
        "webhook.controllers.revisions.extension_state",
        "extension_status",
        "not errors and not standing.is_preview",
        "not errors",
    ),
    "a long trial that is not announced": Fault(
        "trials",
        "webhook.controllers.apply.prevalidation",
        "Prevalidation._claim",
        'await self._say(held, "trying")',
        "None",
        found_by=105,
    ),
    "an outcome that is not told": Fault(
        "trials",
        "webhook.controllers.apply.prevalidation",
        "Prevalidation._try_here",
        "await self._say(held, tried.verdict, tried, seconds=WRITE_SECONDS)",
        "pass",
        found_by=35,
    ),
    "a change that is held for ever": Fault(
        "trials",
        "webhook.controllers.apply.prevalidation",
        "Prevalidation._settle",
        "self._release(held.event)",
        "pass",
        found_by=2,
    ),
    "a word that is not taken back": Fault(
        "trials",
        "webhook.controllers.apply.prevalidation",
        "Prevalidation._forget",
        "self._tasks.create_task(self._withdraw(held.revision))",
        "pass",
        found_by=549,
    ),
    "a generated policy that stays though its template asks no more": Fault(
        "generated",
        "webhook.controllers.generate.keeper",
        "GenerationKeeper._is_stale",
        "return is_owned_by(document, self._plan.owners)",
        "return False",
        found_by=333,
    ),
    "a generated policy that somebody changed and nobody puts right": Fault(
        "generated",
        "webhook.controllers.generate.objects",
        "Rewrites.__call__",
        "if not self.differs(wanted, current) or",
        "if True or",
        found_by=29,
    ),
    "generated policies that wait though all is known": Fault(
        "generated",
        "webhook.controllers.object_writer",
        "ObjectWriter.synced",
        "self._listener(())",
        "pass",
        found_by=432,
    ),
}
