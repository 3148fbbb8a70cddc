"""The driver of the engine ``Rego``: connects templates to :mod:`webhook.rego`.

It queries a template's rule ``violation`` for each matching constraint, with ``input.review`` and
``input.parameters``; ``data.inventory`` is the referential data.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from webhook.constraint.driver import DriverViolation
from webhook.constraint.drivers import external_data, references
from webhook.constraint.drivers.budget import FIRST_STEPS, BudgetedContext, ReviewContext
from webhook.constraint.drivers.hook import advice, hook
from webhook.constraint.drivers.specialisation import ConstraintRules
from webhook.constraint.errors import CompileError, InvalidTemplate, PolicyError
from webhook.rego.builtins.registry import GATEKEEPER
from webhook.rego.engine import CompileOptions, compile_rule, load_rule, specialise_modules
from webhook.rego.errors import DepthError, EngineFault, EvaluationError, RegoErrors
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.text import display, to_json
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, key, sort_key, type_name
from webhook.rego.run.weight import FREE_STEPS, text_steps
from webhook.rego.syntax.parser import parse_module
from webhook.rego.write.generate import compile_parts
from webhook.slices import all_of_type, distinct_in_slices, sorted_in_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import CodeType

    from webhook.constraint.drivers.specialisation import Specialiser
    from webhook.constraint.limits import Limits
    from webhook.constraint.template import Code, Template
    from webhook.rego.code_cache import Codes
    from webhook.rego.engine import CompiledRule, Entrypoint
    from webhook.rego.run.values import Value
    from webhook.rego.syntax.ast import Module, RegoVersion

NAME: Final = "Rego"

_Shared: TypeAlias = tuple[dict[str, Any], EvaluationContext, int]
"""Data, context, and the clock reading of a fresh budget (0 without a budget): an evaluation that
finds it changed renews the budget.
"""

NEEDS_A_DOOR: Final = frozenset({"http.send"})
"""Built-ins that a process without the matching service refuses at compile time. Otherwise such a
template would compile and never find a violation.
"""

VIOLATION: Final = f"data.{references.ENTRY}.{references.RULE}"

_MISSING: Final = object()

_LOST_MEMBER: Final = (
    '"violation" held {}, which denies nothing: each member must be an object with a "msg"'
)
_OTHER_VALUE: Final = (
    '"violation" was of type {}, which denies nothing: it must be a set of objects with a "msg"'
)

MANY_VIOLATIONS: Final = 64
"""From this many violations on they are checked all at once first."""

_NO_PARAMETERS: Final[dict[str, Any]] = {}
"""One shared object, because specialised rules are found by the identity of the parameters."""


class RegoDriver:
    """Compiles templates whose source is Rego, v0 or v1."""

    def __init__(
        self,
        *,
        disabled_builtins: Collection[str] = (),
        cache: Codes | None = None,
        compile_parts: Callable[[Sequence[str]], tuple[CodeType, ...]] = compile_parts,
        specialiser: Specialiser | None = None,
        services: Mapping[str, Any] | None = None,
    ) -> None:
        """Without arguments it compiles and evaluates as Gatekeeper.

        ``cache`` stores compiled code for the next start; ``compile_parts`` compiles generated
        source; ``specialiser`` writes specialised code for constraints. ``services`` give access to
        the network, for reviews without a budget only: a server must not wait for a network.
        """
        self._services = services
        self._specialiser = specialiser
        self._cache = cache
        self._options = CompileOptions(
            disabled_builtins=frozenset(disabled_builtins),
            builtins={external_data.NAME: external_data.BUILTIN},
            level=GATEKEEPER,
            queries=(hook(),),
            compile_parts=compile_parts,
        )

    @property
    def name(self) -> str:
        """The engine's name in templates."""
        return NAME

    @property
    def options(self) -> CompileOptions:
        """Returns the compile options; other analyses of templates must use the same."""
        return self._options

    def compile(self, template: Template, code: Code) -> RegoEvaluator:  # noqa: ARG002  # a parameter of the protocol
        """Compiles a template's Rego.

        Raises :class:`~webhook.constraint.errors.InvalidTemplate`.
        """
        modules = modules_of(code.source)
        try:
            violation = compile_rule(modules, VIOLATION, options=self._options, cache=self._cache)
        except RegoErrors as errors:
            message = f"unable to compile modules: {errors}{advice(errors, modules[0].version)}"
            raise CompileError(message) from None
        return self._evaluator(code, violation)

    def load(self, template: Template, code: Code, key: str, body: bytes) -> RegoEvaluator:
        """Loads code that another Waddle process compiled with the same disabled built-ins.

        ``key`` is the code's key in the cache.
        """
        violation = load_rule(body, key, options=self._options, cache=self._cache)
        if violation is None:
            return self.compile(template, code)
        return self._evaluator(code, violation)

    def _evaluator(self, code: Code, violation: CompiledRule) -> RegoEvaluator:
        rules = None
        if self._specialiser is not None:
            write = partial(self._specialise, code.source)
            rules = ConstraintRules(violation, write, self._specialiser)
        asks = external_data.NAME in repr(code.source)  # no text, no call
        evaluator = AskingEvaluator if asks else RegoEvaluator
        return evaluator(violation.entry, rules, self._services)

    def _specialise(self, source: Any, parameters: Any) -> tuple[Entrypoint, int] | None:
        """Returns the rule specialised for these parameters and its size in bytes.

        None if there is none.

        The source is parsed and compiled again: keeping the intermediate form would cost every
        template memory for the few constraints that are specialised.
        """
        try:
            program = specialise_modules(modules_of(source), parameters, options=self._options)
            return None if program is None else (program.rule(VIOLATION), program.size)
        except (RegoErrors, RecursionError, MemoryError):
            return None  # larger than CPython compiles, or memory is, as parameters can make it


def modules_of(source: Any) -> list[Module]:
    """Returns a template's modules, its own first; raises InvalidTemplate."""
    rego, version, libraries = _source(source)
    entry = _parse(rego, references.ENTRY, version)
    references.check_entry(entry)
    modules = [
        _parse(text, references.library_file(index), version)
        for index, text in enumerate(libraries)
    ]
    references.check_references(modules, entry)
    return [references.as_entry(entry), *modules]


def _parse(text: str, file: str, version: RegoVersion) -> Module:
    try:
        return parse_module(text, file, version)
    except RegoErrors as errors:
        first = errors.errors[0]
        # OPA reports an empty module alone, and with a place that is none.
        text = (
            f"{file}:0: {first.code}: {first.message}"
            if first.message == "empty module"
            else str(errors)
        )
        raise CompileError(f"invalid ConstraintTemplate: {text}", "parse") from None


def _source(source: Any) -> tuple[str, RegoVersion, list[str]]:
    """Returns the Rego, its version (any but ``v1`` means v0, as in Gatekeeper) and its libraries."""
    if type(source) is not dict:
        raise InvalidTemplate("could not recognize the type")
    rego = source.get("rego")
    if rego is None:
        raise InvalidTemplate("rego source missing required field: rego")
    version, libraries = source.get("version", ""), source.get("libs", [])
    for name, value in (("rego", rego), ("version", version)):
        if type(value) is not str:
            raise InvalidTemplate(f"source.{name} must be a string")
    if type(libraries) is not list or not all(type(item) is str for item in libraries):
        raise InvalidTemplate("source.libs must be an array of strings")
    return rego, "v1" if version == "v1" else "v0", libraries


class RegoEvaluator:
    """A compiled template."""

    __slots__ = ("_rules", "_services", "_violation", "lost")

    reads_constraint: Final = False

    def __init__(
        self,
        violation: Entrypoint,
        rules: ConstraintRules | None = None,
        services: Mapping[str, Any] | None = None,
    ) -> None:
        """``rules`` are the specialised rules of single constraints."""
        self._services = None if services is None else dict(services)
        self._violation = violation
        self._rules = rules
        self.lost = ""
        """The last finding without a message, which denied nothing; empty for none."""

    def begin(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None = None
    ) -> _Shared:
        """Returns the state of a review.

        One time and one random seed for all constraints of the template.

        Each evaluation has the whole budget of the limits; without a budget they share the steps.
        """
        data = {"inventory": inventory}
        budget = limits.budget
        if budget is None:
            plain = ReviewContext(
                limits.deadline,
                steps=limits.steps,
                print_=limits.print_,
                services=self._services,
            )
            plain.shared = shared
            return data, plain, 0
        context = BudgetedContext(limits.deadline, steps=budget.steps, print_=limits.print_)
        context.shared = shared
        context.budget = budget
        context.next_check = untouched = budget.steps - FIRST_STEPS
        return data, context, untouched

    def evaluate(self, given: Any, review: Any, state: _Shared) -> Sequence[DriverViolation]:
        """Returns the violations of one constraint in OPA's order: by details, then by message."""
        parameters = _NO_PARAMETERS if given is None else given
        data, context, untouched = state
        if untouched and context.next_check != untouched:
            cast("BudgetedContext", context).renew()
        rule = self._violation if self._rules is None else self._rules.rule(parameters)
        try:
            result = rule({"review": review, "parameters": parameters}, data, context)
            return () if result is UNDEFINED else self._violations(result, context)
        # Short, with the texts in another function: without any memory left, CPython 3.11 never
        # leaves a function whose handlers lie beyond its 256th instruction (it makes a number of
        # the place).
        except (EvaluationError, RecursionError) as error:
            raise _failure(error) from None
        except MemoryError as error:
            raise error.with_traceback(None) from None  # frees the values of the evaluation

    def _violations(self, result: Value, context: EvaluationContext) -> list[DriverViolation]:
        """Reads the rule's value as messages with details.

        The members of a set or the keys of an object are violations, as in Rego's ``violation[r]``;
        other values have none, nor do members without ``msg``; such are noted. Writing them is charged
        like all other work.
        """
        members = _members(result)
        if not members:
            if type(result) is not RegoSet and result != {}:
                self.lost = _OTHER_VALUE.format(type_name(result))
            return []
        if len(members) > FREE_STEPS:
            context.charge(len(members))
        if len(members) > MANY_VIOLATIONS and (plain := _plain_messages(members)) is not None:
            context.check()
            return _without_details(plain)
        items: dict[Any, tuple[Any, str]] = {}
        alone: dict[str, None] = {}
        """Messages without details, as most policies have them; they are sorted as texts."""
        for member in members:
            is_object = type(member) is dict or type(member) is RegoObject
            msg = member.get("msg", _MISSING) if is_object else _MISSING
            if msg is _MISSING:
                other = f"a member of type {type_name(member)}"
                self.lost = _LOST_MEMBER.format('an object without "msg"' if is_object else other)
                continue
            if type(msg) is not str:
                raise PolicyError(
                    f"extracting message binding: .msg accessor error: {display(msg)} is of the type "
                    f"{type_name(msg)}, expected string",
                    no_verdict=True,
                )
            details = member.get("details", _MISSING)
            if details is _MISSING:
                alone[msg] = None
                continue
            if details:
                steps = text_steps(details)
                if steps > FREE_STEPS:
                    context.charge(steps)
            items[key(details), msg] = (details, msg)
        return _in_order(items, alone)


class AskingEvaluator(RegoEvaluator):
    """A compiled template that may ask providers; raises if a response is missing."""

    __slots__ = ()

    asks_providers: Final = True

    def begin(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None = None
    ) -> _Shared:
        """Returns the state of a review, with the known provider responses."""
        state = super().begin(limits, inventory, shared)
        context = cast("ReviewContext", state[1])
        context.asking = external_data.Asking(limits.known)
        context.moment = limits.moment
        return state

    def evaluate(self, given: Any, review: Any, state: _Shared) -> Sequence[DriverViolation]:
        """Returns the violations; raises :class:`~webhook.external_data.exchange.Unanswered`."""
        asking = cast("ReviewContext", state[1]).asking
        violations: Sequence[DriverViolation] = ()
        error: PolicyError | None = None
        try:
            violations = super().evaluate(given, review, state)
        except PolicyError as raised:
            error = raised
        asking.end()
        if error is not None:
            raise error
        return violations


def _failure(error: EvaluationError | RecursionError) -> PolicyError:
    """Returns the policy's error for an evaluation that ended with this error."""
    if isinstance(error, RecursionError):
        error = DepthError()
    return PolicyError(
        str(error),
        overrun=error.code == "eval_cancel_error",
        too_deep=type(error) is DepthError,
        bug=error if isinstance(error, EngineFault) else None,
    )


def _without_details(messages: Collection[str]) -> list[DriverViolation]:
    """Returns distinct messages in order."""
    new = tuple.__new__  # may run thousands of times: takes half the time of calling the class
    return [
        new(DriverViolation, (msg if msg.isascii() else to_json(msg), {}))
        for msg in sorted_in_slices(messages)
    ]


def _members(result: Value) -> Collection[Any]:
    """Returns the members of a set, perhaps repeated, or the keys of an object."""
    if type(result) is RegoObject:
        return result.keys()
    # An array's members are its positions, a dict's are strings.
    return result.parts() if type(result) is RegoSet else ()


def _plain_messages(members: Collection[Any]) -> set[str] | None:
    """Returns the messages if every member has only a text ``msg``; None otherwise."""
    messages: list[Any] = [
        member.get("msg") for member in members if type(member) is dict and len(member) == 1
    ]
    if len(messages) < len(members) or not all_of_type(messages, str):
        return None
    return distinct_in_slices(messages)


def _in_order(items: dict[Any, tuple[Any, str]], alone: Collection[str]) -> list[DriverViolation]:
    """Returns messages with and without details in the order of an OPA set."""
    if not items:
        return _without_details(alone)
    for msg in alone:
        items.setdefault((key({}), msg), ({}, msg))
    pairs = list(items.values())
    if len(pairs) > 1:
        pairs.sort(key=_order)
    return [DriverViolation(to_json(msg), to_json(details)) for details, msg in pairs]


def _order(pair: tuple[Any, str]) -> tuple[Any, str]:
    return sort_key(pair[0]), pair[1]
