"""The client: takes templates, constraints and data, and gives snapshots of them.

Everything that changes goes through here, from one task; everything that reads
takes :attr:`Client.snapshot` and keeps what it took for as long as it needs. A
change that is refused leaves what was in force before: a template that no longer
compiles goes on enforcing its last good revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import constraint as constraints
from webhook.constraint import enforcement, schema
from webhook.constraint.digest import Digest
from webhook.constraint.errors import (
    InvalidConstraint,
    InvalidTemplate,
    MissingTemplate,
)
from webhook.constraint.inventory import Inventory
from webhook.constraint.snapshot import Entry, Snapshot
from webhook.constraint.template import read_template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.driver import Driver, Evaluator
    from webhook.constraint.target import Target
    from webhook.constraint.template import Template


class Client:
    """Templates, constraints and data. Not to be changed by two tasks at once."""

    def __init__(
        self,
        *,
        targets: Sequence[Target],
        drivers: Sequence[Driver],
        enforcement_points: Sequence[str] = enforcement.POINTS,
        error_is_violation: bool = True,
    ) -> None:
        """The order of ``drivers`` is their priority for a template with several sources."""
        self._targets = {target.name: target for target in targets}
        self._drivers = {driver.name: driver for driver in drivers}
        self._points = tuple(enforcement_points)
        self._error_is_violation = error_is_violation
        self._entries: dict[str, Entry] = {}
        self._inventory = Inventory()
        self._namespaces: dict[str, Mapping[str, Any]] | None = None
        self._namespaces_published = False
        self._digest = Digest()
        self._revision = 0
        self._snapshot: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot:
        """What is in force now."""
        if self._snapshot is None:
            self._revision += 1
            self._snapshot = Snapshot(
                targets=self._targets,
                entries=tuple(self._entries.values()),
                inventory=self._inventory.publish(),
                namespaces=self._publish_namespaces(),
                enforcement_points=self._points,
                error_is_violation=self._error_is_violation,
                digest=self._digest.hex(),
                revision=self._revision,
            )
        return self._snapshot

    def copy(self) -> Client:
        """Another client with the same templates and constraints, and no data."""
        other = Client(
            targets=tuple(self._targets.values()),
            drivers=tuple(self._drivers.values()),
            enforcement_points=self._points,
            error_is_violation=self._error_is_violation,
        )
        other._entries = dict(self._entries)
        other._digest = self._digest.copy()
        return other

    # --- templates ---------------------------------------------------------------------------

    def create_crd(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The constraint CRD of a template, without adding it.

        Raises :class:`~webhook.constraint.errors.InvalidTemplate`.
        """
        template = read_template(document)
        return schema.create_crd(template, self._target(template))

    def add_template(self, document: Mapping[str, Any]) -> bool:
        """Add or replace a template; False if nothing changed.

        Its constraints stay in force as they were until they are added again. Raises
        :class:`~webhook.constraint.errors.InvalidTemplate`, and then changes nothing.
        """
        template = read_template(document)
        old = self._entries.get(template.name)
        key = ("template", template.name)
        if old is not None and self._digest.holds(key, document):
            return False
        if old is not None and old.constraints and old.template.target != template.target:
            raise InvalidTemplate(
                "ConstraintTemplates with Constraints may not change targets: "
                f"old targets [{old.template.target}], new targets [{template.target}]"
            )
        target = self._target(template)
        crd = schema.create_crd(template, target)
        evaluator = self._compile(template)
        kept = old.constraints if old is not None else ()
        self._entries[template.name] = Entry(template, target, evaluator, kept, crd)
        self._digest.put(key, document)
        self._snapshot = None
        return True

    def remove_template(self, name: str) -> bool:
        """Remove a template and its constraints; False if it was not there."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return False
        self._digest.drop(("template", name))
        for constraint in entry.constraints:
            self._digest.drop(("constraint", *constraint.key))
        self._snapshot = None
        return True

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
        # Gatekeeper prints its drivers with their priorities, and asks for none by name.
        known = " ".join(
            f"{name}:{priority}" for name, priority in sorted(_priorities(self._drivers).items())
        )
        raise InvalidTemplate(
            "no language driver is installed that handles this constraint template: "
            f'available drivers: map[{known}], wanted ""'
        )

    # --- constraints -------------------------------------------------------------------------

    def validate_constraint(self, document: Mapping[str, Any]) -> None:
        """Check a constraint as admission does, without adding it.

        Raises :class:`~webhook.constraint.errors.InvalidConstraint` (a
        :class:`~webhook.constraint.errors.SchemaViolation` where the schema
        refuses) and :class:`~webhook.constraint.errors.MissingTemplate`.
        """
        self._validated(document)

    def add_constraint(self, document: Mapping[str, Any], *, is_valid: bool = False) -> bool:
        """Add or replace a constraint; False if nothing changed. Raises as the check does.

        With ``is_valid`` it need not fit its template's schema: it did fit an earlier one.
        """
        entry = self._validated(document, is_valid=is_valid)
        constraint = self._read_constraint(entry, document)
        key = ("constraint", *constraint.key)
        if self._digest.holds(key, constraint.document):
            return False
        others = [item for item in entry.constraints if item.name != constraint.name]
        ordered = tuple(sorted([*others, constraint], key=lambda item: item.name))
        self._entries[entry.template.name] = Entry(
            entry.template, entry.target, entry.evaluator, ordered, entry.crd
        )
        self._digest.put(key, constraint.document)
        self._snapshot = None
        return True

    def remove_constraint(self, kind: str, name: str) -> bool:
        """Remove a constraint; False if it was not there."""
        entry = self._entries.get(kind.lower())
        kept = tuple(item for item in entry.constraints if item.name != name) if entry else ()
        if entry is None or len(kept) == len(entry.constraints):
            return False
        self._entries[kind.lower()] = Entry(
            entry.template, entry.target, entry.evaluator, kept, entry.crd
        )
        self._digest.drop(("constraint", entry.template.kind, name))
        self._snapshot = None
        return True

    def _validated(self, document: Mapping[str, Any], *, is_valid: bool = False) -> Entry:
        name, gvk = name_of(document), gvk_of(document)
        if not name:
            raise InvalidConstraint("invalid Constraint: missing metadata.name")
        if not gvk.kind:
            raise InvalidConstraint("invalid Constraint: missing kind")
        if gvk.group != constraints.GROUP:
            raise InvalidConstraint(
                f'invalid Constraint: wrong API Group for Constraint "{name}", '
                f'got "{gvk.group}" but need "{constraints.GROUP}"'
            )
        entry = self._entries.get(gvk.kind.lower())
        if entry is None:
            template = gvk.kind.lower()
            raise MissingTemplate(f'missing ConstraintTemplate: template "{template}" not found')
        entry.target.validate_constraint(document)
        if not is_valid:
            schema.validate_constraint(document, entry.crd)
        return entry

    def _read_constraint(self, entry: Entry, document: Mapping[str, Any]) -> Constraint:
        document = schema.with_defaults(document, entry.crd)
        action = enforcement.action_of(document)
        points = enforcement.points_of(document, self._points) if action == "scoped" else {}
        spec = document.get("spec") or {}
        match = spec.get("match")
        parameters = {} if spec.get("parameters") is None else spec["parameters"]
        return constraints.Constraint(
            kind=entry.template.kind,
            name=name_of(document),
            document=document,
            enforcement_action=action,
            points=points,
            match=None if match is None else entry.target.compile_match(match),
            parameters=parameters,
            parameters_key=encode(parameters, sort_keys=True),
        )

    # --- data --------------------------------------------------------------------------------

    def add_data(self, document: Mapping[str, Any]) -> bool:
        """Add or replace an object of ``data.inventory``; False if no target can keep it.

        Namespaces serve namespaceSelector too. Raises
        :class:`~webhook.constraint.errors.InvalidData`.
        """
        return self._change_data(document, document)

    def remove_data(self, document: Mapping[str, Any]) -> bool:
        """Remove an object from ``data.inventory``; only its identity is looked at."""
        return self._change_data(document, None)

    def set_namespace(self, name: str, document: Mapping[str, Any] | None) -> None:
        """Know a Namespace for namespaceSelector and ``namespaceObject``; None when it is gone.

        After the first call the Namespaces of ``data.inventory`` are data alone: a
        cluster knows its Namespaces whether policies may read them or not.
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


def _priorities(drivers: Mapping[str, Driver]) -> dict[str, int]:
    return {name: number for number, name in enumerate(drivers, 1)}
