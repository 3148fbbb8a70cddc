"""The parts of an evaluation: queries, the world around them, and steps that a tracer receives."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.rego.location import NOWHERE, Location
from webhook.rego.run import runtime
from webhook.rego.run.values import UNDEFINED, Value
from webhook.rego.trace.events import Step, StepTracer, TraceEvent, place_of
from webhook.rego.trace.text import documents_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check import ir
    from webhook.rego.check.tree import Tree
    from webhook.rego.run.limits import EvaluationContext


@dataclass(frozen=True, slots=True)
class EarlyExit:
    """The end of the search: at once (``early``), or once all begun checks are done."""

    early: bool
    before: EarlyExit | None = None


Signal: TypeAlias = EarlyExit | None
Then: TypeAlias = "Callable[[], Signal]"


@dataclass(slots=True, eq=False)
class BodyQuery:
    """A body under evaluation."""

    body: Sequence[ir.Lit]
    number: int
    parent: int
    values: dict[str, Value]
    names: Mapping[str, str]
    find_one: bool = False
    defined: bool = False
    at: ir.Lit | None = None
    place: Location = NOWHERE


@dataclass(slots=True)
class World:
    """The replacements by ``with``."""

    input: Value
    data: Value
    replaced: tuple[tuple[str, ...], ...] = ()
    """Paths of documents that are no rules' now."""
    functions: dict[ir.Function, ir.With] = field(default_factory=dict)
    values: dict[ir.Function, Value] = field(default_factory=dict)
    known: dict[Any, Value] = field(default_factory=dict)
    """Documents and answers of functions that have been computed."""


ABSENT: Final = object()


class Steps:
    """Evaluates queries over a program's rules, and passes each step to a tracer."""

    def __init__(  # each is a part of the world around a query
        self,
        tree: Tree,
        builtins: Mapping[str, Builtin],
        input_value: Value,
        data: Value,
        context: EvaluationContext,
        trace: StepTracer,
        *,
        indexing: bool = True,
        early_exit: bool = True,
    ) -> None:
        self.tree = tree
        self.builtins = builtins
        self.context = context
        self.trace = trace
        self.world = World(input_value, data)
        self.indexing = indexing
        self.early_exit = early_exit
        self.count = 0
        self.named: dict[int, list[tuple[str, Any]]] = {}
        self.nodes: list[Any] = []
        """The nodes that events name by identity: they live as long."""

    # --- steps -------------------------------------------------------------------------------

    def notify(self, step: Step, query: BodyQuery, node: Any, message: str = "") -> None:
        """Tells the tracer of a step."""
        place = place_of(node)
        if place.row:
            query.place = place
        if step == "Exit" and query.find_one:
            message = "early"
        event = TraceEvent(
            step, node, query.place, query.number, query.parent, message, query.names
        )
        event.body = query.body
        if self.trace.values:
            event.values = dict(query.values)
            event.documents = {
                text: value
                for text, at in self.references(node)
                if (value := self.world.known.get(at, UNDEFINED)) is not UNDEFINED
            }
        self.trace(event)

    def references(self, node: Any) -> list[tuple[str, Any]]:
        """The documents that a node names, and where they are kept once they are known."""
        references = self.named.get(id(node))
        if references is None:
            references = self.named[id(node)] = list(documents_of(node))
            self.nodes.append(node)
        return references

    def child(
        self, query: BodyQuery, body: Sequence[ir.Lit], *, rule: ir.Rule | None = None
    ) -> BodyQuery:
        """A body that is evaluated for a part of a query: a closure over it, or a rule's own."""
        self.context.charge(20)
        self.count += 1
        if rule is None:
            return BodyQuery(body, self.count, query.number, query.values, query.names)
        return BodyQuery(body, self.count, query.number, {}, rule.names)

    def resolved(self, path: Sequence[Value]) -> Value:
        """The base document at a path below ``input`` or ``data``."""
        root, *rest = path
        value = self.world.input if root == "input" else self.world.data
        for step in rest:
            value = runtime.index(value, step)
        return value
