"""Many rules in one module, asked of both engines at once, and in what their answers differ."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.differential.agreement import frozen_tagged, frozen_value
from tests.differential.composition import values
from tests.differential.composition.forms import HELPERS, OTHER
from tests.differential.oracle import Oracle
from webhook.rego.builtins.registry import LATEST
from webhook.rego.engine import (
    CompileOptions,
    EvaluationContext,
    Program,
    compile_modules,
    specialise_modules,
)
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.run.values import UNDEFINED, RegoSet
from webhook.rego.syntax.parser import parse_module

HEADER: Final = "package t\n"
IMPORTS: Final = "".join(f"import future.keywords.{word}\n" for word in ("and", "or", "not"))
"""Imports that make ``not`` another literal; most modules must be without them."""

NEW: Final = re.compile(r"\} (?:or|and) \{|not \{")
"""Matches rules that need the imports."""

NEWER: Final = re.compile(r'\$"')
"""Matches rules with syntax newer than OPA 1.17."""

RULES: Final = 40
"""Rules of a module: what a module costs by itself is shared, and what is refused is soon found."""


@dataclass(frozen=True, slots=True)
class ComposedRule:
    """Rules of which the one called ``name`` is asked for."""

    name: str
    place: str
    text: str

    @property
    def imports(self) -> bool:
        """Whether the module is to have the imports: where it must, and sometimes elsewhere."""
        return bool(NEW.search(self.text)) or self.name.endswith("7")


@dataclass(frozen=True, slots=True)
class Difference:
    """A rule with different results in OPA and in our engine."""

    rule: ComposedRule
    way: str
    """The way by which our engine came to its answer."""
    mine: Any
    real: Any

    def shown(self) -> str:
        """For whoever reads it."""
        only_mine, only_real = _without_what_is_shared(self.mine, self.real)
        return f"{self.way}, {self.rule.place}:\n{self.rule.text}\n  here {only_mine}\n  OPA  {only_real}"


def _without_what_is_shared(mine: Any, real: Any) -> tuple[str, str]:
    if mine[0] == real[0] == "set":
        return str(set(mine[1] - real[1]))[:600], str(set(real[1] - mine[1]))[:600]
    return str(mine)[:600], str(real)[:600]


@dataclass(slots=True)
class Batch:
    """A module of many rules, without those that either engine refuses."""

    rules: list[ComposedRule]
    terms: tuple[str, ...] = field(default_factory=values.terms)
    level: str = LATEST
    """The OPA that is asked."""

    @property
    def header(self) -> str:
        """Returns the module's text before the rules."""
        return (
            HEADER
            + (IMPORTS if self.level == LATEST and any(one.imports for one in self.rules) else "")
            + HELPERS
        )

    def modules(self) -> tuple[str, str]:
        """The sources."""
        text = "\n".join(one.text for one in self.rules)
        # The package beside comes first: OPA finds out about types in the order of files.
        return OTHER, f"{self.header}{text}\n"

    def at(self, row: int) -> ComposedRule | None:
        """Returns the rule at this line."""
        line = self.header.count("\n") + 1
        for one in self.rules:
            line += 1 + one.text.count("\n")
            if row < line:
                return one
        return None


def batches(questions: Iterable[ComposedRule], level: str = LATEST) -> Iterator[Batch]:
    """The rules in modules, each of one place: what is replaced in one is replaced in all of it.

    What is too new for the level is left out.
    """
    waiting: dict[tuple[str, bool], list[ComposedRule]] = {}
    about = values.terms(large=level == LATEST)
    for one in questions:
        imports = level == LATEST and one.imports
        if level != LATEST and (NEW.search(one.text) or NEWER.search(one.text)):
            continue
        some = waiting.setdefault((one.place, imports), [])
        some.append(one)
        if len(some) == RULES:
            yield Batch(waiting.pop((one.place, imports)), about, level)
    for some in waiting.values():
        yield Batch(some, about, level)


Refused = dict[str, tuple[ComposedRule, str]]
"""Rules that are refused, with the code of the first reason, by name."""


def refused_here(batch: Batch) -> tuple[Refused, Program | None]:
    """Leave out of the batch what our engine refuses; what it makes of the others, if there are any."""
    found: Refused = {}
    while batch.rules:
        try:
            program = compile_modules(parsed(batch), options=CompileOptions(level=batch.level))
        except RegoErrors as errors:
            refused = [(error.location.row, str(error.code)) for error in errors.errors]
            _leave_out(batch, refused, found, str(errors))
        else:
            return found, program
    return found, None


def refused_there(oracle: Oracle, batch: Batch) -> Refused:
    """Leave out of the batch what OPA refuses."""
    found: Refused = {}
    while batch.rules:
        answer = oracle.ask(op="many", modules=list(batch.modules()), version="v1", queries=[])
        if "stage" not in answer:
            break
        rows = [(int(error.get("row", 0)), error["code"]) for error in answer["errors"]]
        _leave_out(batch, rows, found, str(answer))
    return found


def _leave_out(batch: Batch, rows: list[tuple[int, str]], found: Refused, why: str) -> None:
    before = len(batch.rules)
    for row, code in rows:
        one = batch.at(row)
        if one is not None and one.name not in found:
            found[one.name] = one, code
    batch.rules = [one for one in batch.rules if one.name not in found]
    assert len(batch.rules) < before, f"no rule is at fault: {why[:2000]}"


def parsed(batch: Batch) -> list[Any]:
    """Our trees of the sources."""
    return [
        parse_module(source, f"test-{number}.rego", "v1")
        for number, source in enumerate(batch.modules())
    ]


def answers_there(oracle: Oracle, batch: Batch) -> dict[str, Any]:
    """Returns OPA's result of each rule."""
    names = [one.name for one in batch.rules]
    found = oracle.ask(
        op="many",
        modules=list(batch.modules()),
        version="v1",
        queries=[f"data.t.{name} = x" for name in names],
        input_term=values.input_term(batch.terms),
        data=values.DATA,
    )
    return dict(zip(names, map(frozen_answer, found["answers"]), strict=True))


def frozen_answer(found: dict[str, Any]) -> Any:
    """Returns an answer of the oracle: a value, or the code and message of an error."""
    if "results" not in found:
        (error,) = found["errors"]
        return "error", error["code"], error["message"].partition(":\n")[0]
    if not found["results"]:
        return "undefined", None
    (bindings,) = found["results"]
    return frozen_tagged(bindings["x"])


def answered(entry: Callable[[], Any], input_value: Any) -> Any:
    """Returns an entry point's result in the same form; our exceptions are results, too."""
    try:
        value = entry()(input_value, values.DATA, EvaluationContext())
    except EvaluationError as error:
        return "error", error.code, error.message.partition(":\n")[0]
    except Exception as error:  # noqa: BLE001  # whatever it is, the other rules are asked as well
        return "fault", type(error).__name__, str(error)
    if value is UNDEFINED:
        return "undefined", None
    return frozen_value(value)


OTHER_REVIEW: Final = {"one": 2, "a": "b", "xs": [], "s": RegoSet(["c"]), "o": {"b": 1}, "v": 7}
"""Of another request, for what a constraint keeps from one evaluation to the next."""


def answered_after_another(
    for_parameters: Callable[[Any], Any], parameters: Any
) -> Callable[[], Any]:
    """A constraint's entry point that has answered another request before."""

    def entry() -> Any:
        found = for_parameters(parameters)
        answered(lambda: found, {"parameters": parameters, "review": OTHER_REVIEW})
        return found

    return entry


def compared(oracle: Oracle, batch: Batch, counted: Counter[str]) -> Iterator[Difference]:
    """Ask for each rule in each way that our engine has; what differs."""
    everything = {one.name: one for one in batch.rules}
    here, program = refused_here(batch)
    accepted = len(batch.rules)
    there = refused_there(oracle, batch)
    if here:
        # OPA must also refuse the rules that we refuse.
        alone = Batch([one for one, _ in here.values()], batch.terms, batch.level)
        there |= refused_there(oracle, alone)
    for name in here.keys() | there.keys():
        mine, real = here.get(name), there.get(name)
        if mine is None or real is None:  # where both refuse one fault may hide another
            answers = [
                ("accepted", None) if one is None else ("refused", one[1]) for one in (mine, real)
            ]
            yield Difference(everything[name], "load", *answers)
        else:
            counted["refused"] += 1
    if not batch.rules:
        return
    real_answers = answers_there(oracle, batch)
    input_value = values.input_value(batch.terms)
    parameters = input_value["parameters"]
    options = CompileOptions(level=batch.level)
    if program is None or len(batch.rules) < accepted:
        program = compile_modules(parsed(batch), options=options)
    own = specialise_modules(parsed(batch), parameters, options=options)
    for one in batch.rules:
        real = real_answers[one.name]
        counted["asked"] += 1
        counted[_kind(real)] += 1
        path = f"data.t.{one.name}"
        mine = answered(lambda path=path: program.rule(path), input_value)  # type: ignore[misc]
        if mine != real:
            yield Difference(one, "general", mine, real)
            continue
        rule = program.document(path)
        constraint = answered_after_another(rule.for_parameters, parameters)
        known = answered(constraint, input_value)
        if known != real:
            yield Difference(one, "parameters known", known, real)
        if own is not None:
            mine = answered(lambda path=path: own.rule(path), input_value)  # type: ignore[misc]
            if mine != real:
                yield Difference(one, "written for the parameters", mine, real)


def _kind(answer: Any) -> str:
    if answer is None or isinstance(answer, str):
        return "other"
    if answer[0] in ("error", "undefined"):
        return str(answer[0])
    return "empty" if answer[0] in ("set", "object", "array") and not answer[1] else "other"
