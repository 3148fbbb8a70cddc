"""The world of generated policies: templates that ask for ValidatingAdmissionPolicies beside ours.

What holds is what holds of any cluster. More than that, in the end there are those policies and
bindings that one plan of all there is has, and no other; who changed or deleted one finds it put
right; and none is deleted while what it was made of is there and has not changed.
"""

import random

from tests.simulation.api_server import Happened, Json, Refusal, Served, Storage
from tests.simulation.cluster_enforcement import CALM_SECONDS
from tests.simulation.cluster_users import Users
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.control_plane import TEMPLATES
from tests.simulation.loop import Loop
from tests.simulation.policies import KINDS, is_broken, native_template, requests_policy
from webhook.app.cluster import generation_options
from webhook.constraint.enforcement import action_of
from webhook.controllers.generate.keeper import COMPARE_SECONDS
from webhook.controllers.generate.objects import is_contained, owner_of
from webhook.generation.plan import Enforced, Planner
from webhook.generation.scope import scope_of
from webhook.settings.serve import ServeSettings

GROUP = "admissionregistration.k8s.io"
POLICIES = Served(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy")
BINDINGS = Served(
    GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)
CONFIGURATIONS = Served(
    GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)

LATE_SECONDS = 5.0
"""By how much these kinds may be known after all others: a plan of them waits for nothing else."""

MEDDLED_MAX = 2
"""The number of changes of a generated object by others: it is left alone after more."""


class GenerationUsers(Users):
    """Their templates are in CEL, too; now and then one of them meddles with what was generated."""

    def __init__(self, chance: random.Random, storage: Storage) -> None:
        super().__init__(chance, storage)
        self.meddles = False
        self._meddled: dict[str, int] = {}

    def template(self, kind: str, variant: int) -> Json:
        """A template with a policy of the API server's own."""
        return native_template(kind, variant)

    def write(self) -> None:
        """A change of policy, of data, or of what was generated."""
        if self.chance.random() < 0.25:
            self.meddles = True
            self._meddle()
            self.meddles = False
        else:
            super().write()

    def _meddle(self) -> None:
        served = self.chance.choice([POLICIES, BINDINGS])
        names = [name for _, name in self.storage.items(served)]
        names = [name for name in names if self._meddled.get(name, 0) < MEDDLED_MAX]
        if not names:
            return
        name = self.chance.choice(names)
        self._meddled[name] = self._meddled.get(name, 0) + 1
        try:
            if self.chance.random() < 0.5:
                self.storage.delete(served, "", name)
                return
            body = self.storage.get(served, "", name)
            field = "failurePolicy" if served is POLICIES else "validationActions"
            changed = body["spec"] | {field: "Other" if served is POLICIES else ["Audit"]}
            self.storage.replace(served, "", name, body | {"spec": changed}, "")
        except Refusal:
            return


class GeneratedWorld(ClusterWorld):
    """A world with generated policies."""

    replicas_chosen = (1, 1, 1, 2, 2)
    rests_seconds = (4.0, COMPARE_SECONDS + 1.0)  # what waits for its next comparison writes in it
    users: GenerationUsers

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        for served in (POLICIES, BINDINGS, CONFIGURATIONS):
            self.storage.serve(served)
        self.control_plane.owning |= set(KINDS)
        self.users = GenerationUsers(loop.random, self.storage)
        self.storage.listeners.append(self._happened)

    def _start_server(self) -> None:
        super()._start_server()
        assert self.server is not None
        if self.loop.random.random() < 0.5:
            self.server.late = dict.fromkeys([POLICIES.plural, BINDINGS.plural], LATE_SECONDS)

    async def _heal(self) -> None:
        assert self.server is not None
        self.server.late = {}
        await super()._heal()

    def _happened(self, change: Happened) -> None:
        """Checks that generated objects are not deleted while they are needed."""
        if change.served not in (POLICIES, BINDINGS) or change.after is not None:
            return
        assert change.before is not None
        owner, now = owner_of(change.before), self.loop.now()
        for key, item in self.enforcement.held():
            template = self.storage.items(TEMPLATES).get(("", item["kind"].lower()), item)
            if item["metadata"]["uid"] != owner.get("uid") or self.users.meddles:
                continue
            changed = max(
                self.enforcement.changed[key],
                self.enforcement.changed[TEMPLATES.kind, template["metadata"]["name"]],
            )
            is_wanted = requests_policy(template["spec"]) and not any(
                is_broken(one["spec"]) for one in (item, template)
            )
            if is_wanted and changed < now - CALM_SECONDS:
                self.loop.fail(f"{change.before['metadata']['name']} is deleted and is wanted")

    def _unsettled(self) -> str:
        if why := super()._unsettled():
            return why
        held = dict(self.enforcement.held())
        if any(is_broken(item["spec"]) for item in held.values()):
            return ""  # the earlier state decides
        templates = {name: item for (kind, name), item in held.items() if kind == TEMPLATES.kind}
        constraints = {
            key: Enforced(item, action_of(item))
            for key, item in held.items()
            if key[0] != TEMPLATES.kind
        }
        options = generation_options(ServeSettings())
        scope = scope_of(None, excluded=(), exempted=options.exempted)
        planner = Planner(options.plan, "v1")
        plan = planner.plan(templates, constraints, scope, lambda _: "")
        for served, expected in ((POLICIES, plan.policies), (BINDINGS, plan.bindings)):
            there = {name: item for (_, name), item in self.storage.items(served).items()}
            if there.keys() != expected.keys():
                return f"of {served.plural} there are {sorted(there)}, wanted {sorted(expected)}"
            for name, item in expected.items():
                if not is_contained(item["spec"], there[name]["spec"]):
                    return f"{served.kind} {name} is not as it should be: {there[name]['spec']}"
                if owner_of(item)["uid"] != owner_of(there[name]).get("uid"):
                    return f"{served.kind} {name} is owned by another: {there[name]['metadata']}"
        return ""
