"""Steps of an evaluation, as OPA's tracers get them, and which of them an explanation shows."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from webhook.rego.location import NOWHERE, Location
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.rego.check import ir
    from webhook.rego.run.values import Value

Step: TypeAlias = Literal[
    "Enter", "Exit", "Eval", "Redo", "Fail", "Note", "Index", "Unify", "Duplicate"
]
TracedNode: TypeAlias = "ir.Lit | ir.Rule | Sequence[ir.Lit] | str"
"""The node of a step: a literal, a rule, a body, or the text of a node."""

Explanation = Literal["full", "notes", "fails", "debug", "default"]

KINDS: Final = ("index_excluded", "early_exit")
"""Why a line may not have been reached: an index or an early exit passed over it."""

EVENTS_MAX: Final = 500_000
"""The most steps kept of one query: a loop may take any number, and a step is some 500 bytes."""


@dataclass(slots=True)
class TraceEvent:
    """One step.

    ``query`` is the number of its body, and ``parent`` the number of the query that evaluates that
    body.
    """

    step: Step
    node: TracedNode
    location: Location
    query: int
    parent: int
    message: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names that were written of the rule's variables."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """Variables that have values."""
    documents: Mapping[str, Value] = field(default_factory=dict)
    """Documents of rules that the node names, as far as they are known."""
    body: Sequence[ir.Lit] = ()
    """The body that a literal is in."""

    @property
    def index(self) -> int:
        """The literal's index in its body."""
        return next((i for i, lit in enumerate(self.body) if lit is self.node), 0)


class StepTracer(Protocol):
    """Receives each step."""

    @property
    def unifications(self) -> bool:
        """Whether it receives these, too."""

    @property
    def values(self) -> bool:
        """Whether steps are to have the variables' values."""

    def __call__(self, event: TraceEvent) -> None:
        """Receives a step at the moment at which it is taken."""


class StepRecorder:
    """Keeps steps."""

    values = True

    def __init__(self, *, unifications: bool = False) -> None:
        self.unifications = unifications
        self.events: list[TraceEvent] = []

    def __call__(self, event: TraceEvent) -> None:
        """Keeps a step, up to a number."""
        if len(self.events) < EVENTS_MAX:
            self.events.append(event)


def shown(events: Sequence[TraceEvent], explanation: Explanation) -> list[TraceEvent]:
    """The steps that an explanation shows (OPA v1/topdown/lineage)."""
    if explanation == "debug":
        return list(events)
    if explanation == "full":
        return [event for event in events if event.step != "Unify"]
    steps: set[Step] = {"notes": {"Note"}, "fails": {"Fail"}}.get(explanation) or {"Note", "Fail"}  # type: ignore[assignment]
    return _with_context(events, lambda event: event.step in steps)


def _with_context(
    events: Sequence[TraceEvent], chosen: Callable[[TraceEvent], bool]
) -> list[TraceEvent]:
    """Yields the chosen events, each with the bodies that led to it and were not shown before."""
    result: list[TraceEvent] = []
    entered: dict[int, TraceEvent] = {}
    for event in events:
        if chosen(event):
            path, at = [event], entered.get(event.query)
            while at is not None and at is not path[-1]:
                path.append(at)
                at = entered.get(at.parent)
            result += reversed(path)
            entered = {}
        if event.step in {"Enter", "Redo"} and not is_literal(event.node):
            entered[event.query] = event
    return result


def is_literal(node: TracedNode) -> bool:
    """Whether the node of a step is a literal, not a body or rule."""
    return hasattr(node, "withs")


def place_of(node: TracedNode) -> Location:
    """Where the node of a step stands."""
    if isinstance(node, str):
        return NOWHERE
    if hasattr(node, "location"):
        return node.location
    return node[0].location if node else NOWHERE
