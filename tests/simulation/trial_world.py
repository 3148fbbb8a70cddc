"""The world of trials: replicas that have what is new tried before any of them enforces it.

What holds is what holds of any cluster; templates that go beyond the bounds of a trial are broken
as others are. More than that, where nobody is lost, slow or told late each of those is tried once,
by one replica; and in the end no generation that there is waits for a trial.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from tests.simulation.api_server import Happened
from tests.simulation.cluster_enforcement import Enforcement, Replica
from tests.simulation.cluster_users import Users
from tests.simulation.cluster_world import OPERATIONS, ClusterWorld
from tests.simulation.control_plane import TEMPLATES
from tests.simulation.loop import Loop
from tests.simulation.policies import BEYOND, KINDS, is_beyond, new_driver, template
from webhook.constraint.client import Client
from webhook.constraint.errors import CompileError
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.constraint.template import Code
from webhook.controllers.apply.prevalidation import LONGEST_SECONDS, Trier
from webhook.policies.validation import validate
from webhook.trials.driver import TriedDriver
from webhook.trials.trials import TrialRequest, Trials, Tried

REVISIONS = ("policy.waddle.dev", "policyrevisions")

TOO_LARGE = "policy is too large: it takes more than 5 s of processor time to compile"

TRIAL_SECONDS = [0.02, 0.02, 0.02, 0.4, 2.0]
"""The durations of a trial; the last two are long enough to be announced."""

BEYOND_SECONDS = 5.0
"""After which one is ended that goes beyond its bounds."""

HEARD_SECONDS = 2.0
"""In which replicas have heard what another says: half a second late at most, and a little more."""

QUEUE_SECONDS = 2 * BEYOND_SECONDS + 8.0
"""The additional time until a change is enforced, with all others before it."""


class Machine:
    """Tries policies on a replica's node, as :class:`webhook.trials.trials.Trials` does.

    Of its processes there is only how long they take, and what they come to.
    """

    def __init__(self, loop: Loop, name: str, fails: float, ended: Callable[[str], None]) -> None:
        """``fails`` is how often it keeps a policy from being tried; ``ended`` is told a text."""
        self._loop = loop
        self._name = name
        self._fails = fails
        self._ended = ended
        self._known: set[str] = set()

    def source(self, code: Code) -> None:
        """Refuse a source that is beyond its bounds; others compile anywhere."""
        text = code.source["rego"]
        if not is_beyond(text):
            return
        if text not in self._known:
            self._end(text)
        raise CompileError(TOO_LARGE)

    def announce(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Compile nothing ahead: of processes there is only the time that trials take."""

    def found_out_all(
        self,
        requests: Sequence[TrialRequest],
        seconds: float,
        notify: Callable[[int, Tried | None], None],
    ) -> None:
        """Reports the outcome of each policy in turn."""
        del seconds
        for number, one in enumerate(requests):
            notify(number, self._one(one))

    def _one(self, request: TrialRequest) -> Tried | None:
        chance = self._loop.random
        texts = [rego for one in request.documents if (rego := _rego(one)) and is_beyond(rego)]
        if chance.random() < self._fails:
            self._loop.notify(self._name, "has no memory for a trial")
            self._loop.sleep(chance.choice(TRIAL_SECONDS))
            return None
        if texts:
            if texts[0] not in self._known:
                self._end(texts[0])
            return Tried("ended", TOO_LARGE, BEYOND_SECONDS, 0, BEYOND_SECONDS)
        took = chance.choice(TRIAL_SECONDS)
        self._loop.sleep(took)
        name = request.document["kind"], request.document["metadata"]["name"]
        self._loop.notify(self._name, f"tried {name} for {took} s")
        client = Client(targets=[AdmissionTarget()], drivers=[new_driver()])
        problems = validate(client, request.documents, 1.0)
        own = [one for one in problems if (one.kind, one.name) == name and one.severity == "error"]
        if own:
            return Tried("refused", own[0].message, took, 0, took)
        return Tried("passed", "", took, 0, took)

    def _end(self, text: str) -> None:
        self._ended(text)
        self._loop.notify(self._name, f"tries what will be ended: {text[-30:]!r}")
        self._loop.sleep(BEYOND_SECONDS)
        self._known.add(text)


def _rego(document: Mapping[str, Any]) -> str:
    targets = document["spec"].get("targets")
    return targets[0]["rego"] if targets else ""


class TrialUsers(Users):
    """Some templates of theirs go beyond the bounds of a trial, each with a text of its own."""

    beyond = 0

    def write(self) -> None:
        """A change of policy or, now and then, of data."""
        if self.chance.random() < 0.25:
            self.beyond += 1
            large = self.chance.random() < 0.2
            kind = self.chance.choice(KINDS)
            self._apply(TEMPLATES, "", template(kind, BEYOND, number=self.beyond, large=large))
        else:
            super().write()


class TrialEnforcement(Enforcement):
    """Enforcement may be later by the time of trials before it."""

    def late(self, replica: Replica) -> str:
        """Returns the changes that a ready replica should have enforced by now."""
        since = self.loop.now() - QUEUE_SECONDS
        busy = max(self.changed.values(), default=0.0) > since
        return "" if busy else super().late(replica)


class TrialWorld(ClusterWorld):
    """A world with trials of policies."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.operations = OPERATIONS[0]  # who writes no statuses has nothing tried before
        self.users = TrialUsers(loop.random, self.storage)
        self.ended: Counter[str] = Counter()
        """The numbers of trials of policies beyond their bounds, on all replicas, by text."""
        self.claims: dict[str, float] = {}
        """When each replica first said something of a template."""
        self.storage.listeners.append(self._happened)
        self.fails = loop.random.choice([0.0, 0.0, 0.3])
        loop.has_threads = True

    def _watched(self) -> Enforcement:
        return TrialEnforcement(self.loop, self.storage)

    def _trier(self, replica: Replica) -> Trier:
        machine = Machine(self.loop, replica.name, self.fails, self._ends)
        return Trier(cast("Trials", machine), 1.0)

    def _happened(self, change: Happened) -> None:
        if change.served.kind == "ConstraintTemplatePodStatus" and change.after is not None:
            self.claims.setdefault(change.after["status"]["id"], self.loop.now())

    def _ends(self, text: str) -> None:
        """A policy goes beyond its bounds. Until replicas have heard of each other each tries it."""
        silent_since = self.loop.now() - HEARD_SECONDS
        if all(self.claims.get(one.name, math.inf) < silent_since for one in self.replicas):
            self.ended[text] += 1

    def _new_client(self, trier: Trier | None) -> Client:
        assert trier is not None
        driver = TriedDriver(new_driver(), trier.trials)
        return Client(targets=[AdmissionTarget()], drivers=[driver])

    def _excuse(self, seconds: float, *replicas: Replica) -> None:
        """Extends the excuse by the longest trial: others wait for a replica that tries."""
        super()._excuse(seconds + LONGEST_SECONDS, *replicas)

    def _unsettled(self) -> str:
        if why := super()._unsettled():
            return why
        if self.disturbed:
            return ""  # who said that it is at it may have been killed, and what it is at applied
        there = {(item["metadata"]["uid"], item["metadata"]["generation"]) for item in self._held()}
        for item in self._revisions():
            outcome = (item.get("status") or {}).get("outcome") or {}
            of = item["spec"]["subject"]["uid"], item["spec"]["generation"]
            is_somebody = outcome.get("triedBy", {}).get("uid")
            if of in there and outcome.get("verdict") == "trying" and is_somebody:
                return f"a trial of {item['metadata']['name']} goes on for ever: {outcome}"
        for text, times in self.ended.items():
            if times > 1 and not self.fails:
                return f"{times} replicas tried what goes beyond its bounds: {text[-30:]!r}"
        return ""

    def _revisions(self) -> Iterable[dict[str, Any]]:
        return self.storage.items(self.storage.kinds[REVISIONS]).values()

    def _held(self) -> list[dict[str, Any]]:
        return [item for _, item in self.enforcement.held()]
