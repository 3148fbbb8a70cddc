"""Questions that are parsed, checked and answered by OPA, so that only writing code is left.

What is asked of the generator a thousand times over, with its lines counted or with a fault put
into it, begins here.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.differential.composition import values
from tests.differential.composition.comparison import (
    Batch,
    ComposedRule,
    answers_there,
    batches,
    parsed,
    refused_here,
    refused_there,
)
from tests.differential.oracle import Oracle
from webhook.rego.engine import CompileOptions
from webhook.rego.program import Compiled, compile_rules, specialise

GENERAL_OPTIONS: Final = CompileOptions()
GENERAL, FOR_PARAMETERS = "general", "written for the parameters"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A rule of a checked program, and what OPA gives for it."""

    rule: ComposedRule
    way: str
    compiled: Compiled
    again: Callable[[], Compiled]
    """Checks the program once more."""
    input_value: Any
    real: Any

    @property
    def path(self) -> tuple[str, str]:
        """Returns the path of the document."""
        return "t", self.rule.name


def prepared(
    oracle: Oracle, questions: Iterable[ComposedRule], options: CompileOptions = GENERAL_OPTIONS
) -> Iterator[Prepared]:
    """Yields the rules that both engines accept, in general code and in a constraint's own."""
    for batch in batches(questions, options.level):
        refused_here(batch)
        refused_there(oracle, batch)
        if not batch.rules:
            continue
        answers = answers_there(oracle, batch)
        input_value = values.input_value(batch.terms)
        for way in (GENERAL, FOR_PARAMETERS):
            again = partial(_compiled, batch, way, input_value, options)
            compiled = again()
            for one in batch.rules:
                yield Prepared(one, way, compiled, again, input_value, answers[one.name])


def _compiled(batch: Batch, way: str, input_value: Any, options: CompileOptions) -> Compiled:
    compiled = compile_rules(parsed(batch), options)
    if way == FOR_PARAMETERS:
        specialise(compiled, input_value["parameters"])
    return compiled
