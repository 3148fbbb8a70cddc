"""Known questions asked of code that is written for one constraint: its parameters stand in it.

Most policies read the input everywhere. Moved below ``input.parameters``, all that they read
is known while their code is written, and the answers must be those of the general code.
"""

import dataclasses
import random
import re
from collections.abc import Iterator

from tests.differential.agreement import NOW_NS, Answer, Question, frozen_value
from tests.differential.mutation import mutated
from tests.differential.policies import of_cases
from webhook.rego.engine import CompileOptions, Query, compile_modules, specialise_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.syntax.parser import parse_module, parse_query

_READ = re.compile(r"\binput(?=[.\[])")
_WHOLE = re.compile(r"\binput\b(?!\.parameters\b)")


def moved(question: Question) -> Question | None:
    """The question with all that it reads of the input below ``parameters``; None if it cannot be."""
    if question.strict or question.input_term is not None:
        return None
    modules = tuple(_READ.sub("input.parameters", module) for module in question.modules)
    query = _READ.sub("input.parameters", question.query)
    if any(_WHOLE.search(text) for text in (*modules, query)):
        return None
    return dataclasses.replace(
        question,
        modules=modules,
        query=query,
        input={"parameters": question.input},
        has_input=True,
    )


def movable() -> Iterator[tuple[str, Question]]:
    """OPA's cases of which :func:`moved` makes something."""
    for name, question in of_cases():
        found = moved(question)
        if found is not None:
            yield name, found


def varied(question: Question, chance: random.Random) -> Question:
    """The same with other parameters."""
    parameters = mutated(question.input["parameters"], chance)
    return dataclasses.replace(question, input={**question.input, "parameters": parameters})


def specialised(question: Question) -> Answer | None:
    """Returns the answer of code written for the question's parameters; None if none is written."""
    modules = [
        parse_module(source, f"test-{number}.rego", question.version)
        for number, source in enumerate(question.modules)
    ]
    options = CompileOptions(level=question.level)
    try:
        program = specialise_modules(modules, question.input["parameters"], options=options)
        if program is None:
            return None
        query = program.query(parse_query(question.query))
    except RegoErrors as errors:
        return "load", [(error.code, error.message) for error in errors.errors]
    try:
        found = query(question.input, question.data, EvaluationContext(now_ns=NOW_NS))
    except EvaluationError as error:
        return "eval", [(error.code, error.message)]
    return "results", frozenset(frozen_value(bindings) for bindings in found)


def compiled(question: Question) -> Query | Answer:
    """The general code, or what is wrong with the text."""
    modules = [
        parse_module(source, f"test-{number}.rego", question.version)
        for number, source in enumerate(question.modules)
    ]
    try:
        program = compile_modules(modules, options=CompileOptions(level=question.level))
        return program.query(parse_query(question.query))
    except RegoErrors as errors:
        return "load", [(error.code, error.message) for error in errors.errors]


def general(code: Query | Answer, question: Question, *, known: bool = False) -> Answer:
    """Returns the answer of the general code in the same form.

    With ``known``, after what the parameters alone decide has been computed.
    """
    if isinstance(code, tuple):
        return code
    try:
        query = code.for_parameters(question.input["parameters"]) if known else code
    except RegoErrors as errors:
        return "load", [(error.code, error.message) for error in errors.errors]
    try:
        found = query(question.input, question.data, EvaluationContext(now_ns=NOW_NS))
    except EvaluationError as error:
        return "eval", [(error.code, error.message)]
    return "results", frozenset(frozen_value(bindings) for bindings in found)
