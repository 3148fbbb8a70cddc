"""The client: templates, constraints and data in, snapshots out.

One task makes all changes. Readers take :attr:`Client.snapshot` and keep it as long as they need
it. A refused change leaves the former revision in force: a template that no longer compiles still
enforces its last good revision.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode_to_keep
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import constraint as constraints
from webhook.constraint import containment, enforcement, group, schema
from webhook.constraint.constraint import Broken, Constraint
from webhook.constraint.digest import Digest
from webhook.constraint.entry import Entry, OtherTarget
from webhook.constraint.errors import (
    BrokenTemplate,
    ConstraintFrameworkError,
    InvalidConstraint,
    InvalidTemplate,
    MemberFault,
    MissingEngine,
    MissingTemplate,
)
from webhook.constraint.existing import allows_existing, is_allowed_to_exist
from webhook.constraint.failure_policy import failure_policy_of, readable_failure_policy
from webhook.constraint.inventory import Inventory
from webhook.constraint.isolation import (
    DEFAULT,
    FaultView,
    InvalidOnError,
    Isolation,
    answer_to,
    on_error_of,
    on_undecidable_of,
    readable_on_error,
    template_on_error,
)
from webhook.constraint.rollout import read_rollout
from webhook.constraint.several_targets import SeveralTargets
from webhook.constraint.snapshot import Snapshot
from webhook.constraint.template import CEL, Template, kind_of, read_template

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from webhook.constraint.causes import OnError
    from webhook.constraint.driver import Driver, Evaluator
    from webhook.constraint.limits import OnBug
    from webhook.constraint.target import Target

MISSING_CEL: Final = (
    f"not enforced: its only code is for the engine {CEL} (CEL), which is switched off "
    "(--enable-k8s-native-validation=false); what it would decide is warned about and recorded"
)


class Client:
    """Templates, constraints and data. Only one task at a time may change them."""

    def __init__(
        self,
        *,
        targets: Sequence[Target],
        drivers: Sequence[Driver],
        enforcement_points: Sequence[str] = enforcement.POINTS,
        isolation: Isolation = DEFAULT,
        reviewed_targets: Collection[str] | None = None,
        on_bug: OnBug | None = None,
    ) -> None:
        """The order of ``drivers`` is their priority for a template with several sources.

        ``reviewed_targets`` are the targets of this process's reviews, None for all: templates of
        other targets are only checked and kept. ``on_bug`` gets faults of Waddle itself that end an
        evaluation.
        """
        self._on_bug = on_bug
        self._targets = {target.name: target for target in targets}
        self._reviewed_targets = None if reviewed_targets is None else frozenset(reviewed_targets)
        self._drivers = {driver.name: driver for driver in drivers}
        self._points = tuple(enforcement_points)
        self._isolation = isolation
        self._entries: dict[str, Entry] = {}
        self._resolved: dict[str, tuple[tuple[Any, ...], Constraint]] = {}
        self._inventory = Inventory()
        self._namespaces: dict[str, Mapping[str, Any]] | None = None
        self._namespaces_published = False
        self._digest = Digest()
        self._revision = 0
        self._snapshot: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot:
        """Returns the snapshot in force."""
        if self._snapshot is None:
            self._revision += 1
            reviewed, targets = self._reviewed_targets, self._targets.items()
            self._snapshot = Snapshot(
                targets={name: of for name, of in targets if reviewed is None or name in reviewed},
                entries=tuple(self._resolved_entries()),
                inventory=self._inventory.publish(),
                namespaces=self._publish_namespaces(),
                enforcement_points=self._points,
                isolation=self._isolation,
                digest=self._digest.hex(self._undecidable()),
                revision=self._revision,
                on_bug=self._on_bug,
            )
        return self._snapshot

    @property
    def usable_templates(self) -> list[Template]:
        """Returns the templates with a usable revision: their last good revisions."""
        return [
            entry.template
            for entry in self._entries.values()
            if entry.evaluator is not None
            or any(further.evaluator is not None for further in entry.others)
        ]

    def elsewhere(self, template: str) -> str:
        """Returns why no review evaluates a template, because of its targets; empty if one may."""
        entry = self._entries.get(template)
        return (
            ""
            if entry is None or self._reviewed_targets is None
            else entry.elsewhere(self._reviewed_targets)
        )

    def _undecidable(self) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Yields the broken policies, which change decisions, for the digest."""
        for entry in self._resolved_entries():
            for constraint in entry.constraints:
                if entry.fault_of(constraint, self._isolation.on_error) is not None:
                    yield ("broken", *constraint.key), constraint.document

    def copy(self) -> Client:
        """Returns a client with the same templates and constraints, but without data."""
        other = Client(
            targets=tuple(self._targets.values()),
            drivers=tuple(self._drivers.values()),
            enforcement_points=self._points,
            isolation=self._isolation,
            reviewed_targets=self._reviewed_targets,
            on_bug=self._on_bug,
        )
        other._entries = dict(self._entries)
        other._digest = self._digest.copy()
        return other

    def adopt(self, snapshot: Snapshot) -> None:
        """Starts from a snapshot's policies and data.

        Safe from any thread, as snapshots never change.
        """
        kept = (*snapshot.entries, *snapshot.spare)
        self._entries = {entry.template.name: group.unresolved(entry) for entry in kept}
        self._inventory.adopt(snapshot.inventory)
        self._namespaces, self._namespaces_published = dict(snapshot.namespaces), False
        self._snapshot = None

    def set_target(self, target: Target) -> None:
        """Replaces a target; its templates and their constraints must be added again."""
        self.remove_target(target.name)
        self._targets[target.name] = target

    def remove_target(self, name: str) -> None:
        """Removes a target and its templates."""
        self._targets.pop(name, None)
        for entry in list(self._entries.values()):
            if any(target.name == name for target in entry.targets):
                self.remove_template(entry.template.name)
        self._snapshot = None

    # --- templates ---------------------------------------------------------------------------

    @containment.of_template
    def create_crd(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the constraint CRD of a template without adding it; raises InvalidTemplate."""
        template = self._read(document)
        template_on_error(document)
        return schema.create_crd(template, self._matching(template))

    def crd_of(self, name: str) -> Mapping[str, Any]:
        """Returns the constraint CRD of a template that was added."""
        crd = self._entries[name].crd
        assert crd is not None, "a template that was added was checked"
        return crd

    def add_template(self, document: Mapping[str, Any]) -> bool:
        """Adds or replaces a template; False if nothing changed.

        Its constraints stay in force as they were until they are added again. Raises
        :class:`~webhook.constraint.errors.InvalidTemplate`; then the revision before
        stays, marked as broken (:meth:`break_template`).
        """
        try:
            return self._add_template(document)
        except InvalidTemplate as error:
            self.break_template(document, error)
            raise

    @containment.of_template
    def _add_template(self, document: Mapping[str, Any]) -> bool:
        template = self._read(document)
        old = self._entries.get(template.name)
        key = ("template", template.name)
        is_known = old is not None and self._digest.holds(key, document)
        if is_known and old is not None and old.holds(document):
            return False
        if old is not None and old.constraints and old.template.targets != template.targets:
            raise InvalidTemplate(
                "ConstraintTemplates with Constraints may not change targets: "
                f"old targets [{old.template.targets}], new targets [{template.targets}]"
            )
        on_error = template_on_error(document)
        target = self._target(template)
        crd = schema.create_crd(template, self._matching(template))
        if is_known and old is not None:
            evaluator, others = old.evaluator, old.others
        else:
            evaluator = self._compile(template)
            others = tuple(
                OtherTarget(source, self._target(source), self._compile(source))
                for source in template.others
            )
        kept = old.constraints if old is not None else ()
        entry = Entry(template, target, evaluator, kept, crd, on_error, others=others)
        self._entries[template.name] = entry
        self._digest.put(key, document)
        self._snapshot = None
        return True

    def missing_engine(self, document: Mapping[str, Any]) -> str:
        """Returns why a valid template is not enforced: its engine is off; empty if it is.

        Raises :class:`~webhook.constraint.errors.InvalidTemplate`.
        """
        engines = {code.engine for code in read_template(document).code}
        return MISSING_CEL if CEL in engines and engines.isdisjoint(self._drivers) else ""

    def break_template(self, document: Mapping[str, Any], error: InvalidTemplate) -> None:
        """Records that the newest revision of a template is unusable, and why.

        The last good revision stays in force if ``onError`` says so. Otherwise its constraints
        still match, and are answered by ``onError``.
        """
        name, kind = name_of(document), kind_of(document)
        if not kind or name != kind.lower():
            return  # No constraint can be of it.
        try:
            template = self._read(document)
            matching, target = self._matching(template), self._target(template)
        except InvalidTemplate:
            matching = target = next(iter(self._targets.values()))
            template = Template(name, kind, target.name, (), document=document)
        broken = Broken(error.stage, str(error))
        on_error = readable_on_error(document)
        # Without its engine a template still declares the schema of its constraints.
        is_read = isinstance(error, MissingEngine)
        crd = schema.create_crd(template, matching) if is_read else None
        old = self._entries.get(name)
        if old is not None and old.evaluator is not None:
            entry = replace(old, on_error=on_error, broken=broken)
        else:
            kept = () if old is None else old.constraints
            others = tuple(
                OtherTarget(source, self._target(source), None) for source in template.others
            )
            entry = Entry(template, target, None, kept, crd, on_error, broken, others)
        if old is None or (entry, entry.template.document) != (old, old.template.document):
            self._entries[name], self._snapshot = entry, None

    def remove_template(self, name: str) -> bool:
        """Removes a template and its constraints; False if it did not exist."""
        entry = self._entries.get(name)
        if entry is None or entry.template is group.TEMPLATE:
            return False
        del self._entries[name]
        self._digest.drop(("template", name))
        for constraint in entry.constraints:
            self._digest.drop(("constraint", *constraint.key))
        self._snapshot = None
        return True

    @containment.of_template
    def _read(self, document: Mapping[str, Any]) -> Template:
        return read_template(document).foremost(self._targets)

    def _matching(self, template: Template) -> Target | SeveralTargets:
        targets = [self._target(part) for part in template.parts]
        return SeveralTargets(targets) if len(targets) > 1 else targets[0]

    def _target(self, template: Template) -> Target:
        target = self._targets.get(template.target)
        if target is None:
            raise InvalidTemplate(
                f'invalid ConstraintTemplate: target "{template.target}" not recognized, '
                f"known targets [{' '.join(sorted(self._targets))}]"
            )
        return target

    def _compile(self, template: Template) -> Evaluator:
        for name, driver in self._drivers.items():
            for code in template.code:
                if code.engine == name:
                    return driver.compile(template, code)
        if any(code.engine == CEL for code in template.code):
            raise MissingEngine(MISSING_CEL)
        # Gatekeeper prints its drivers with their priorities, and an empty name for the wanted one.
        known = " ".join(sorted(f"{name}:{at}" for at, name in enumerate(self._drivers, 1)))
        raise InvalidTemplate(
            "no language driver is installed that handles this constraint template: "
            f'available drivers: map[{known}], wanted ""'
        )

    # --- constraints -------------------------------------------------------------------------

    @containment.of_constraint
    def validate_constraint(self, document: Mapping[str, Any]) -> None:
        """Checks a constraint as admission does, without adding it.

        Raises :class:`~webhook.constraint.errors.InvalidConstraint` (a
        :class:`~webhook.constraint.errors.SchemaViolation` where the schema
        refuses) and :class:`~webhook.constraint.errors.MissingTemplate`.
        """
        entry = self._validated(document)
        self._check_members(entry, self._read_constraint(entry, dict(document), None))

    def add_constraint(self, document: Mapping[str, Any], *, is_valid: bool = False) -> bool:
        """Adds or replaces a constraint; False if nothing changed.

        Raises as :meth:`validate_constraint`.

        With ``is_valid`` the schema is not checked: the constraint was valid for an earlier one. A
        refused constraint leaves the former revision in force, marked as broken
        (:meth:`break_constraint`).
        """
        try:
            return self._add_constraint(document, is_valid=is_valid)
        except ConstraintFrameworkError as error:
            self.break_constraint(document, error)
            raise

    @containment.of_constraint
    def _add_constraint(self, document: Mapping[str, Any], *, is_valid: bool) -> bool:
        entry = self._validated(document, is_valid=is_valid)
        assert entry.crd is not None
        full = schema.with_defaults(document, entry.crd)
        constraint = self._read_constraint(entry, full, on_error_of(document))
        key = ("constraint", *constraint.key)
        old = group.constraint_named(entry, constraint.name)
        is_known = old is not None and self._digest.holds(key, full) and old.holds(full)
        if not is_known and old is not None and self._is_in_force(entry, old):
            self._check_members(entry, constraint)
        if not is_known:
            self._put_constraint(entry, constraint)
            self._digest.put(key, constraint.document)
        # A group exists even without valid members: groups and members may come and go in any
        # order.
        self._check_members(entry, constraint)
        return not is_known

    def break_constraint(
        self, document: Mapping[str, Any], error: ConstraintFrameworkError
    ) -> None:
        """Records that the newest revision of a constraint is unusable, and why.

        The former revision stays in force, if there is one. Otherwise match and actions are read
        from this one as far as possible.
        """
        name = name_of(document)
        entry = self._entry_for(document)
        if entry is None or not name:
            return
        broken = Broken("constraint", str(error))
        if isinstance(error, BrokenTemplate) and entry.broken is not None:
            broken = entry.broken
        old = group.constraint_named(entry, name)
        on_error = readable_on_error(document)
        if isinstance(error, MemberFault) and not (old and self._is_in_force(entry, old)):
            # The newest version is stored: its members are resolved anew.
            full = schema.with_defaults(document, group.CRD)
            self._put_constraint(entry, self._read_constraint(entry, full, on_error))
            self._digest.put(("constraint", *_key_of(full)), full)
            return
        if old is not None and self._is_in_force(entry, old):
            constraint = replace(old, on_error=on_error, broken=broken)
        else:
            try:
                schema.validate_match(document, entry.matching)
                read = self._read_constraint(entry, dict(document), on_error, is_whole=False)
            except ConstraintFrameworkError:
                if entry.template is group.TEMPLATE:
                    self.remove_constraint(entry.template.kind, name)  # it never was in force
                return  # The subject of the constraint cannot be read.
            constraint = replace(read, broken=broken, is_good=False)
        self._put_constraint(entry, constraint)

    def _put_constraint(self, entry: Entry, constraint: Constraint) -> None:
        others = [item for item in entry.constraints if item.name != constraint.name]
        ordered = tuple(sorted([*others, constraint], key=lambda item: item.name))
        self._entries[entry.template.name] = replace(entry, constraints=ordered)
        self._snapshot = None

    def fault_of(self, kind: str, name: str = "") -> FaultView | None:
        """Returns the fault of a constraint, or without a name that of the template of a kind.

        None if it has none or is unknown. The answer of a template's fault is that of its denying
        constraints.
        """
        entry = self._entries.get(kind.lower())
        if entry is None:
            return None
        constraint = group.constraint_named(entry, name)
        if constraint is not None and entry.template is group.TEMPLATE:
            constraint = self._resolve(constraint)
        broken = (constraint.broken if constraint is not None else None) or entry.broken
        if broken is None or (name and constraint is None):
            return None
        action = entry.on_error if constraint is None else entry.on_error_for(constraint)
        on_error = action or self._isolation.on_error
        is_good = entry.evaluator is not None and (constraint is None or constraint.is_good)
        if is_good and on_error == "lastGood":
            return FaultView(broken.stage, on_error, "lastGood", broken.message)
        actions: tuple[str, ...] = ("deny",)
        if constraint is not None:
            actions = enforcement.actions_at(constraint, enforcement.WEBHOOK, self._points)
        answer = answer_to(
            actions, on_error, point=enforcement.WEBHOOK, spared=False, cause=broken.stage
        )
        return FaultView(broken.stage, on_error, answer, broken.message)

    def remove_constraint(self, kind: str, name: str) -> bool:
        """Removes a constraint; False if it did not exist."""
        entry = self._entries.get(kind.lower())
        old = None if entry is None else group.constraint_named(entry, name)
        if entry is None or old is None:
            return False
        kept = tuple(item for item in entry.constraints if item is not old)
        self._entries[kind.lower()] = replace(entry, constraints=kept)
        self._digest.drop(("constraint", *old.key))
        self._snapshot = None
        return True

    def _entry_for(self, document: Mapping[str, Any]) -> Entry | None:
        """Returns the entry of a constraint's template, or the entry of all groups."""
        kind = gvk_of(document).kind.lower()
        entry = self._entries.get(kind)
        if group.is_group(document):
            target = self._targets.get(group.TEMPLATE.target)
            return entry or (None if target is None else group.entry_of(target))
        is_constraint = gvk_of(document).group == constraints.GROUP
        return entry if is_constraint and kind != group.TEMPLATE.name else None

    # --- groups ------------------------------------------------------------------------------

    def _resolved_entries(self) -> Iterator[Entry]:
        """Yields the templates with their constraints, and groups with their members' evaluators."""
        for entry in self._entries.values():
            if entry.template is not group.TEMPLATE:
                yield entry
            elif entry.constraints:
                yield replace(entry, constraints=tuple(map(self._resolve, entry.constraints)))

    def _check_members(self, entry: Entry, constraint: Constraint) -> None:
        """Raises MemberFault for a group with a member that cannot be evaluated."""
        if entry.template is group.TEMPLATE:
            group.resolved(constraint, self._entries)

    def _is_in_force(self, entry: Entry, constraint: Constraint) -> bool:
        """Whether a constraint can be evaluated as it is; for a group, whether its members can."""
        if entry.template is group.TEMPLATE:
            return self._resolve(constraint).is_good
        return constraint.is_good and entry.evaluator is not None

    def _resolve(self, constraint: Constraint) -> Constraint:
        """Returns a group with its members' evaluators; the same object while these are unchanged."""
        if not constraint.is_good:
            return constraint
        parts = group.parts_of(constraint, self._entries)
        known = self._resolved.get(constraint.name)
        if known is not None and all(map(operator.is_, known[0], parts)):
            return known[1]
        try:
            resolved = group.resolved(constraint, self._entries)
        except MemberFault as error:
            resolved = group.broken_by_member(constraint, error)
        self._resolved[constraint.name] = parts, resolved
        return resolved

    # --- reading documents -------------------------------------------------------------------

    def _validated(self, document: Mapping[str, Any], *, is_valid: bool = False) -> Entry:
        gvk = constraints.identity_of(document)
        entry = self._entry_for(document)
        if entry is None:
            template = gvk.kind.lower()
            raise MissingTemplate(f'missing ConstraintTemplate: template "{template}" not found')
        if entry.crd is None:
            raise BrokenTemplate(
                f'missing ConstraintTemplate: template "{entry.template.name}" has no revision '
                "that can be used"
            )
        entry.matching.validate_constraint(document)
        read_rollout(document)
        try:
            on_error_of(document), on_undecidable_of(document), allows_existing(document)
            failure_policy_of(document, self._isolation.spared_namespaces)
        except InvalidOnError as error:
            raise InvalidConstraint(f"invalid Constraint: {error}") from None
        if entry.template is group.TEMPLATE:
            group.check_group(document)
        elif not is_valid:
            schema.validate_constraint(document, entry.crd)
        return entry

    @containment.of_constraint
    def _read_constraint(
        self,
        entry: Entry,
        document: dict[str, Any],
        on_error: OnError | None,
        *,
        is_whole: bool = True,
    ) -> Constraint:
        """Reads a constraint's match and actions, and with ``is_whole`` the members of a group."""
        action = enforcement.action_of(document)
        points = enforcement.points_of(document, self._points) if action == "scoped" else {}
        spec = document.get("spec") or {}
        match = spec.get("match")
        parameters, key = spec.get("parameters"), b""
        if entry.template is group.TEMPLATE and is_whole:
            parameters, key = group.read_group(document, entry.target), name_of(document).encode()
        return constraints.Constraint(
            kind=entry.template.kind,
            name=name_of(document),
            document=document,
            enforcement_action=action,
            points=points,
            match=None if match is None else entry.match(entry.target, match),
            parameters=parameters,
            parameters_key=key or encode_to_keep(parameters, sort_keys=True),
            on_error=on_error,
            lets_existing=is_allowed_to_exist(document),
            failure_policy=readable_failure_policy(document),
        )

    # --- data --------------------------------------------------------------------------------

    def add_data(self, document: Mapping[str, Any], value: Mapping[str, Any] | None = None) -> bool:
        """Adds or replaces an object of ``data.inventory``; False if no target keeps it.

        Policies read ``value``, by default the document; ``value`` may lack fields that no policy
        reads. Namespaces also serve namespaceSelector. Raises
        :class:`~webhook.constraint.errors.InvalidData`.
        """
        return self._change_data(document, document if value is None else value)

    def data(self, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns the policies' view of an object, by its kind and name; None if it does not exist."""
        for target in self._targets.values():
            path = target.process_data(document)
            if path is not None:
                return self._inventory.get(path)
        return None

    def remove_data(self, document: Mapping[str, Any]) -> bool:
        """Removes an object from ``data.inventory``, by its kind and name."""
        return self._change_data(document, None)

    def set_namespace(self, name: str, document: Mapping[str, Any] | None) -> None:
        """Sets a Namespace for namespaceSelector and ``namespaceObject``; None if it was deleted.

        After the first call the Namespaces of ``data.inventory`` serve only as data: in a cluster,
        all Namespaces are known even if policies may not read them.
        """
        if self._namespaces is None or self._namespaces_published:
            # A published mapping is never changed.
            self._namespaces = dict(self._namespaces or {})
            self._namespaces_published = False
        if document is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = document
        self._snapshot = None

    def _publish_namespaces(self) -> Mapping[str, Any]:
        if self._namespaces is None:
            return self._inventory.publish_namespaces()
        self._namespaces_published = True
        return self._namespaces

    def _change_data(self, document: Mapping[str, Any], value: Mapping[str, Any] | None) -> bool:
        handled = False
        for target in self._targets.values():
            path = target.process_data(document)
            if path is not None:
                self._inventory.put(path, value)
                self._snapshot = None
                handled = True
        return handled


def _key_of(document: Mapping[str, Any]) -> tuple[str, str]:
    return gvk_of(document).kind, name_of(document)
