r"""Waddle in a program of one's own: two doors, ``Policies`` and ``Rego``.

::

    from waddle import Policies, Rego

    policies = Policies.load("policies/")
    for violation in policies.review(pod):
        print(violation.constraint, violation.message)

    rego = Rego.compile({"p.rego": "package p\nallow if input.user == \"ada\""})
    rego.value("data.p.allow", {"user": "ada"})
"""

from __future__ import annotations

import asyncio
import inspect
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from webhook.api.admission import OPERATIONS, InvalidReview
from webhook.api.plain_values import plain
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import NEEDS_A_DOOR, RegoDriver
from webhook.constraint.errors import ReviewError
from webhook.constraint.limits import Limits
from webhook.constraint.placement import namespace_for
from webhook.constraint.result import Excuse
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets import admission
from webhook.constraint.targets.documents import DocumentTarget
from webhook.constraint.targets.known import DOCUMENT_TARGETS, TARGETS
from webhook.constraint.targets.known import NAME as JSON
from webhook.errors import InvalidInputError, WaddleError
from webhook.policies.advice import (
    Matched,
    advice_on,
    advice_on_messages,
    advice_on_template,
    left_out,
)
from webhook.policies.exception_advice import warnings_of_exceptions
from webhook.policies.extensions import foreign_warnings
from webhook.policies.manifests import Manifest, UnreadableFile, read_text
from webhook.policies.policy_files import PolicyFiles
from webhook.policies.recorded_answers import (
    InvalidAnswers,
    RecordedAnswers,
    read_answers,
    recorded_provider,
)
from webhook.policy_kinds.known import foreign_parts
from webhook.rego.engine import UNDEFINED, CompileOptions, EvaluationContext, compile_modules
from webhook.rego.results import ResultQuery
from webhook.rego.run.limits import UNBOUNDED_STEPS
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module
from webhook.review.loops import review
from webhook.review.subject import Subject, is_admission_review, played, value_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from os import PathLike

    from webhook.constraint.result import Result
    from webhook.external_data.exchange import Ask, ProviderRequest
    from webhook.policies.problem import Problem
    from webhook.policies.recorded_answers import RecordedProvider
    from webhook.rego.syntax.ast import RegoVersion
    from webhook.review.outcome import Found
    from webhook.review.policy_set import PolicySet

    ValuesByKey = Mapping[str, Any]
    Providers = Mapping[
        str,
        str
        | PathLike[str]
        | ValuesByKey
        | Callable[[list[str]], ValuesByKey | Awaitable[ValuesByKey]],
    ]
    """The source of each provider's answers, by the provider's name."""

__all__ = [
    "Answer",
    "Excuse",
    "InvalidInputError",
    "InvalidPoliciesError",
    "NoVerdictError",
    "Policies",
    "PolicyWarning",
    "Rego",
    "UnknownPathError",
    "Violation",
    "Violations",
    "WaddleError",
]

_SECONDS: Final = 10.0
_VERSIONS: Final = ("v0", "v1")


class InvalidPoliciesError(WaddleError, ValueError):
    """The policies cannot be used; ``faults`` has the file, line and text of each fault."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class NoVerdictError(WaddleError, RuntimeError):
    """A review has no verdict: a policy failed, or took too long."""


class UnknownPathError(WaddleError, KeyError):
    """No rule and no package has this path."""

    def __str__(self) -> str:
        return str(self.args[0])


class PolicyWarning(UserWarning):
    """Policies are valid, but will probably find less than intended."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation: the constraint (``Kind/name``), the message, and the enforcement action."""

    constraint: str
    message: str
    details: Any
    actions: tuple[str, ...]
    existing: bool = False
    """Whether the old object already had the violation, and the constraint lets it stay."""
    excuse: Excuse | None = None
    """The exception that excuses the violation or weakened its action; None without one."""

    @property
    def denies(self) -> bool:
        """Whether an admission would be denied for it."""
        return "deny" in self.actions


class Violations(list[Violation]):
    """The list of violations.

    ``excused`` are the violations removed by exceptions, each with its exception. ``remarks`` are
    messages without a verdict: errors ignored by ``failurePolicy: Ignore``, and audit annotations.
    """

    __slots__ = ("excused", "remarks")

    def __init__(
        self,
        violations: Iterable[Violation] = (),
        excused: Iterable[Violation] = (),
        remarks: Iterable[str] = (),
    ) -> None:
        super().__init__(violations)
        self.excused = tuple(excused)
        self.remarks = tuple(remarks)


class ReviewOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`Policies.review`."""

    namespace: Mapping[str, Any] | None
    operation: str
    old_object: Mapping[str, Any] | None
    user: Mapping[str, Any] | None
    seconds: float


def _manifests(texts: Mapping[str, str]) -> Iterator[Manifest]:
    for name, text in texts.items():
        try:
            yield from read_text(text, name)
        except UnreadableFile as error:
            raise InvalidPoliciesError([str(error)]) from None


def _valued(values: Iterable[Mapping[str, Any]]) -> Iterator[Manifest]:
    for at, value in enumerate(values):
        place = f"values[{at}]"
        yield Manifest(_fields(value, place), place, 0)


class Policies:
    """All policies of some files: templates with their constraints, mutators, expansions, Config.

    All are loaded in one step. Several threads may share the object.
    """

    def __init__(
        self,
        policies: PolicySet,
        targets: Mapping[str, DocumentTarget],
        ask: Ask | None = None,
    ) -> None:
        self._policies = policies
        self._ask = ask
        self._snapshot = policies.snapshot
        self._targets = targets
        self._matched = Matched()
        self._advice = [
            (entry, problem)
            for entry in self._snapshot.entries
            for problem in advice_on_template(entry)
        ]
        """Warnings about templates that will find nothing; each is given once, at the first
        evaluation."""
        self._warned: list[Problem] = []
        """Warnings about what templates found without a message, each given once."""
        self._about = frozenset(
            target.name
            for entry in self._snapshot.entries
            if entry.constraints
            for target in entry.targets
        ).union(
            [admission.NAME] if policies.foreign.keys else [],
            [JSON] if policies.foreign.document_keys else [],
        )

    @classmethod
    def load(
        cls,
        *paths: str | PathLike[str],
        texts: Mapping[str, str] | None = None,
        values: Iterable[Mapping[str, Any]] = (),
        targets: Sequence[DocumentTarget] = (),
        providers: Providers | None = None,
    ) -> Self:
        """Loads the policies of files, folders, texts and values as one set.

        ``texts`` are YAML documents by name; the name appears in messages. A name that ends in
        ``.json`` means JSON. ``values`` are objects as dictionaries. ``targets`` are the caller's
        own targets beside the declared ones.

        ``providers`` answer ``external_data``, by their names. A provider is a file of recorded
        answers or the same as a dictionary: ``items`` by key, with a ``value`` or an ``error``. A
        provider may also be a function of the keys that returns such a dictionary, at once or
        awaited. A policy that calls another provider has no verdict.

        Raises :class:`InvalidPoliciesError` for an unusable policy, and without any policy. Warns
        (:class:`PolicyWarning`) of constraints that will probably never match, of exceptions that
        have ended, are too wide or excuse less than they say, and of objects that are defined more
        than once: the last definition counts.
        """
        rego = RegoDriver(disabled_builtins=NEEDS_A_DOOR)
        client = Client(targets=(*TARGETS, *targets), drivers=(CelDriver(), rego))
        given = [*_manifests(texts or {}), *_valued(values)]
        policies, report = PolicyFiles(
            client, [Path(path) for path in paths], given, foreign=foreign_parts()
        ).load()
        if report.faults:
            raise InvalidPoliciesError([str(fault) for fault in report.faults])
        foreign = policies.foreign
        if not (report.constraints or foreign.keys or foreign.document_keys):
            sources = list(map(str, (*paths, *(texts or ())))) or ["the list of values"]
            reasons = [*foreign_warnings(policies, report.read)]
            raise InvalidPoliciesError(reasons or [f"{', '.join(sources)} has no constraint"])
        places = {item.key: f"{item.place}: " for item in report.read}
        for problem in advice_on(policies.snapshot):
            place = places.get((problem.kind, problem.name), "")
            warnings.warn(f"{place}{problem}", PolicyWarning, stacklevel=2)
        foreign_lines = foreign_warnings(policies, report.read)
        lines = (*foreign_lines, *left_out(report.read), *report.repeated)
        for line in (*lines, *warnings_of_exceptions(policies, report)):
            warnings.warn(line, PolicyWarning, stacklevel=2)
        ask = _asking(providers or {})
        known = client.snapshot.targets.items()
        documents = {name: target for name, target in known if isinstance(target, DocumentTarget)}
        return cls(policies, {**documents, **DOCUMENT_TARGETS}, ask)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Returns all constraints, and the API server's and Kyverno's policies, as ``Kind/name``.

        These are bound ValidatingAdmissionPolicies and Kyverno's ValidatingPolicies.
        """
        constraint_names = ("/".join(constraint.key) for constraint in self._snapshot.constraints)
        foreign = self._policies.foreign
        return (
            *constraint_names,
            *("/".join(key) for key in (*foreign.keys, *foreign.document_keys)),
        )

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Returns the constraints, as ``Kind/name``, that matched no reviewed object so far.

        They have no verdict, which is not a pass.
        """
        constraint_names = (
            "/".join(constraint.key) for constraint in self._matched.missing(self._snapshot)
        )
        foreign = self._policies.foreign
        every = (*foreign.keys, *foreign.document_keys)
        others = (key for key in every if key not in foreign.matched_keys)
        return (*constraint_names, *("/".join(key) for key in others))

    def review(  # the fields of a request
        self,
        obj: Mapping[str, Any],
        *,
        namespace: Mapping[str, Any] | None = None,
        operation: str = "",
        old_object: Mapping[str, Any] | None = None,
        user: Mapping[str, Any] | None = None,
        seconds: float = _SECONDS,
    ) -> Violations:
        """Reviews a Kubernetes object; returns its violations, whatever the enforcement action.

        The decision is that of the server. Mutators among the policies change the object first,
        objects implied by ExpansionTemplates are reviewed too, and namespaces that a Config
        excludes from the webhook are skipped. An AdmissionReview is reviewed as its request.
        Violations that exceptions excuse are in ``excused`` of the list.

        ``namespace`` is the object's Namespace, for constraints that select by its labels. Without
        it, the Namespace of that name among the policies' files is used. A namespaced object that
        names no namespace is in a Namespace without name and labels. ``operation`` simulates a
        request (CREATE, UPDATE, DELETE, CONNECT) of a ``user`` (``username``, ``groups``); an
        UPDATE needs the ``old_object``. Raises :class:`InvalidInputError` for a value that is no
        Kubernetes object, a list of objects, or no JSON, for an unknown operation, and without
        constraints for admission; :class:`NoVerdictError`.
        """
        document = _object(obj, "")
        self._check_targets(admission.NAME)
        known: Mapping[str, Any] | None
        known = None if namespace is None else _fields(namespace, "namespace")
        if is_admission_review(document):
            if operation or old_object is not None or user is not None or known is not None:
                raise InvalidInputError(
                    "an AdmissionReview has its own operation, objects and user"
                )
            try:
                value = value_of(document, self._snapshot.namespaces)
            except InvalidReview as error:
                raise InvalidInputError(f"AdmissionReview: {error}") from None
            return self._found(value, seconds)
        _check_operation(operation, old_object)
        if known is None:
            known = namespace_for(document, self._snapshot.namespaces)
        if old_object is None and user is None:
            outcome = self._found(AugmentedObject(document, known, operation), seconds)
            if not operation:
                self._warn_of_templates()
            return outcome
        before = None if old_object is None else _object(old_object, "old_object")
        user_fields = {} if user is None else _fields(user, "user")
        try:
            value = played(document, known, operation, before, user_fields)
        except InvalidReview as error:
            raise InvalidInputError(str(error)) from None
        return self._found(value, seconds)

    def review_document(
        self, value: Any, *, name: str = "", target: str = "json", seconds: float = _SECONDS
    ) -> Violations:
        """Reviews any JSON value by constraints of templates for a document target.

        Kyverno's ValidatingPolicies of mode JSON review it, too, if the target is ``json``.

        ``target`` is its name in templates, or ``terraform`` or ``gcp``: each change of a plan, or
        asset, is reviewed. Raises :class:`InvalidInputError` for an unknown target, without a
        constraint for it, for a value of another kind, and for a value that is no JSON;
        :class:`NoVerdictError`.
        """
        if target not in self._targets:
            raise InvalidInputError(f"no target {target}; there are {', '.join(self._targets)}")
        try:
            documents = list(self._targets[target].documents(plain(value, ""), name))
        except ReviewError as error:
            raise InvalidInputError(str(error)) from None
        # An asset may be an object of a cluster, for policies of admission.
        self._check_targets(
            self._targets[target].name, *(document.target for document in documents)
        )
        each = [self._found(document, seconds) for document in documents]
        return Violations(
            (violation for violations in each for violation in violations),
            (violation for violations in each for violation in violations.excused),
        )

    async def review_async(
        self, obj: Mapping[str, Any], **options: Unpack[ReviewOptions]
    ) -> Violations:
        """Reviews like :meth:`review`, in a thread, without blocking the event loop."""
        violations: Violations = await _beside(self.review, obj, **options)
        return violations

    async def review_document_async(
        self, value: Any, *, name: str = "", target: str = "json", seconds: float = _SECONDS
    ) -> Violations:
        """As :meth:`review_document`, in a thread."""
        violations: Violations = await _beside(
            self.review_document, value, name=name, target=target, seconds=seconds
        )
        return violations

    def _check_targets(self, *targets: str) -> None:
        if self._about.isdisjoint(targets):
            raise InvalidInputError(
                f"no constraint is for {targets[0]}; there are some for {', '.join(self._about)}"
            )

    def _warn_of_templates(self) -> None:
        """Warns once for each template that was evaluated without its inputs, or in vain."""
        for entry, problem in list(self._advice):
            if any(constraint.key in self._matched for constraint in entry.constraints):
                self._advice.remove((entry, problem))
                warnings.warn(str(problem), PolicyWarning, stacklevel=3)
        for problem in advice_on_messages(self._snapshot.entries):
            if problem not in self._warned:
                self._warned.append(problem)
                warnings.warn(str(problem), PolicyWarning, stacklevel=3)

    def _found(self, value: Any, seconds: float) -> Violations:
        limits = Limits(deadline=time.monotonic() + seconds, observer=self._matched)
        outcome = review(self._policies, Subject(value, limits=limits), ask=self._ask)
        self._matched.take(outcome.responses)
        _refuse_without_verdict(outcome)
        responses = outcome.responses
        return Violations(
            map(_violation, responses.results),
            map(_violation, responses.excused),
            outcome.remarks,
        )


def _violation(result: Result) -> Violation:
    return Violation(
        "/".join(result.constraint.key),
        result.msg,
        result.details,
        tuple(result.actions),
        result.existing,
        result.excuse,
    )


def _asking(providers: Providers) -> RecordedAnswers:
    """Returns the function that answers for these providers; raises :class:`InvalidInputError`."""
    known: dict[str, RecordedProvider | Callable[[ProviderRequest], RecordedProvider]] = {}
    for name, given in providers.items():
        place = f"providers[{name!r}]"
        try:
            if isinstance(given, Mapping):
                known[name] = recorded_provider(plain(given, place), place)
            elif callable(given):
                known[name] = partial(_called, given, place)
            else:
                known[name] = read_answers(Path(given))
        except InvalidAnswers as error:
            raise InvalidInputError(str(error)) from None
    return RecordedAnswers(known, "give its answers with providers={{{!r}: ...}}")


_LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("loop", default=None)
"""The event loop of the review's caller; functions for providers run in it."""


async def _awaited(violations: Awaitable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return await violations


async def _beside(function: Callable[..., Violations], *args: Any, **options: Any) -> Any:
    """Calls a function in a thread with access to the event loop."""
    _LOOP.set(asyncio.get_running_loop())
    return await asyncio.to_thread(function, *args, **options)


def _called(
    function: Callable[[list[str]], ValuesByKey | Awaitable[ValuesByKey]],
    place: str,
    request: ProviderRequest,
) -> RecordedProvider:
    """Calls a caller's function for keys; its exceptions end the review."""
    answer = function(list(request.keys))
    if inspect.isawaitable(answer):
        loop = _LOOP.get()
        awaited = _awaited(answer)
        answer = (
            asyncio.run(awaited)
            if loop is None
            else asyncio.run_coroutine_threadsafe(awaited, loop).result()
        )
    try:
        return recorded_provider(plain(answer, place), place)
    except InvalidAnswers as error:
        raise InvalidInputError(str(error)) from None


def _object(obj: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Returns a Kubernetes object in JSON types.

    Raises TypeError and ValueError for other values.
    """
    prefix = f"{place}: " if place else ""
    if not isinstance(obj, Mapping):
        raise InvalidInputError(
            f"{prefix}expected an object of Kubernetes, got {type(obj).__name__}"
        )
    missing = [name for name in ("apiVersion", "kind") if not isinstance(obj.get(name), str)]
    if missing:
        raise InvalidInputError(
            f"{prefix}expected an object of Kubernetes, but it has no {' and no '.join(missing)}; "
            "review_document takes any JSON value"
        )
    document: dict[str, Any] = plain(obj, place)
    if _is_list(document):
        raise InvalidInputError(
            f"{prefix}a {document['kind']} holds objects: review each of its items"
        )
    return document


def _fields(value: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Returns fields in JSON types; raises TypeError for a value without fields."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{place}: expected a dictionary, got {type(value).__name__}")
    fields: dict[str, Any] = plain(value, place)
    return fields


def _check_operation(operation: str, old_object: Mapping[str, Any] | None) -> None:
    """Raises ValueError for a request that no API server would send."""
    if operation and operation not in OPERATIONS:
        raise InvalidInputError(
            f"there is no operation {operation!r}: there are {', '.join(sorted(OPERATIONS))}"
        )
    if operation == "UPDATE" and old_object is None:
        raise InvalidInputError("an UPDATE is reviewed with what it changes: give old_object, too")
    if old_object is not None and operation not in ("UPDATE", "DELETE"):
        raise InvalidInputError("old_object is for an UPDATE or a DELETE: say which by operation")


def _is_list(value: Mapping[str, Any]) -> bool:
    """Returns whether the value is a List, as ``kubectl get -o json`` prints it."""
    metadata = value.get("metadata")
    named = isinstance(metadata, dict) and ("name" in metadata or "generateName" in metadata)
    return value["kind"].endswith("List") and isinstance(value.get("items"), list) and not named


def _refuse_without_verdict(outcome: Found) -> None:
    responses = outcome.responses
    problems = [*outcome.faults, *map(str, responses.faults), *map(str, responses.undecided)]
    if problems or responses.deadline_exceeded:
        raise NoVerdictError("; ".join(problems) or "the review exceeded its time limit")


@dataclass(frozen=True, slots=True)
class Answer:
    """One solution of a query: each expression's value, and each variable's."""

    values: tuple[Any, ...]
    bindings: dict[str, Any]


class Rego:
    """Compiled Rego. Any number of threads may share it."""

    def __init__(self, sources: Mapping[str, str], version: RegoVersion, *, strict: bool) -> None:
        self._version: RegoVersion = version
        modules = [parse_module(text, name, version) for name, text in sources.items()]
        self._program = compile_modules(modules, options=CompileOptions(strict=strict))
        self._queries: dict[str, ResultQuery] = {}

    @classmethod
    def compile(
        cls,
        sources: str | Mapping[str, str],
        *,
        version: RegoVersion = "v1",
        strict: bool = False,
    ) -> Self:
        """Compiles modules by their names, or the text of one module.

        ``version`` is v0 or v1. Raises ``webhook.rego.RegoErrors``; ValueError for another version,
        and for sources that are no texts.
        """
        if version not in _VERSIONS:
            raise InvalidInputError(f"there is no version {version!r} of Rego: there are v0 and v1")
        named = {"policy.rego": sources} if isinstance(sources, str) else sources
        if not isinstance(named, Mapping):
            raise InvalidInputError(
                f"sources: expected a text or texts by name, got {type(named).__name__}"
            )
        for name, source in named.items():
            if not (isinstance(name, str) and isinstance(source, str)):
                raise InvalidInputError(
                    f"sources[{name!r}]: expected a text, got {type(source).__name__}"
                )
        return cls(named, version, strict=strict)

    def query(
        self,
        query: str,
        input: Any = UNDEFINED,  # noqa: A002  # Rego's own name
        *,
        data: Mapping[str, Any] | None = None,
        seconds: float = _SECONDS,
    ) -> list[Answer]:
        """Returns all solutions of a query in JSON types; none if it is undefined.

        Raises ``webhook.rego.RegoErrors`` for the query, ``webhook.rego.EvaluationError``,
        TypeError and ValueError for input and data that are no JSON.
        """
        given = UNDEFINED if input is UNDEFINED else plain(input, "input")
        if query not in self._queries:
            self._queries[query] = ResultQuery(self._program, query, version=self._version)
        context = EvaluationContext(time.monotonic() + seconds, UNBOUNDED_STEPS)
        return [
            Answer(
                tuple(to_json(expression.value) for expression in solution.expressions),
                {name: to_json(value) for name, value in solution.bindings.items()},
            )
            for solution in self._queries[query](given, plain(data or {}, "data"), context)
        ]

    def value(
        self,
        path: str,
        input: Any = UNDEFINED,  # noqa: A002  # Rego's own name
        *,
        data: Mapping[str, Any] | None = None,
        default: Any = None,
        seconds: float = _SECONDS,
    ) -> Any:
        """Returns the document at a path such as ``data.p.allow``; ``default`` if it is undefined.

        Raises UnknownPathError if no rule or package has this path,
        ``webhook.rego.EvaluationError``, TypeError and ValueError for input and data that are no
        JSON.
        """
        given = UNDEFINED if input is UNDEFINED else plain(input, "input")
        context = EvaluationContext(time.monotonic() + seconds, UNBOUNDED_STEPS)
        try:
            rule = self._program.rule(path)
        except KeyError:
            raise UnknownPathError(f"there is no rule and no package at {path}") from None
        result = rule(given, plain(data or {}, "data"), context)
        return default if result is UNDEFINED else to_json(result)

    async def query_async(
        self,
        query: str,
        input: Any = UNDEFINED,  # noqa: A002  # as above
        *,
        data: Mapping[str, Any] | None = None,
        seconds: float = _SECONDS,
    ) -> list[Answer]:
        """Queries like :meth:`query`, in a thread, without blocking the event loop."""
        return await asyncio.to_thread(self.query, query, input, data=data, seconds=seconds)

    async def value_async(
        self,
        path: str,
        input: Any = UNDEFINED,  # noqa: A002  # as above
        *,
        data: Mapping[str, Any] | None = None,
        default: Any = None,
        seconds: float = _SECONDS,
    ) -> Any:
        """As :meth:`value`, in a thread."""
        return await asyncio.to_thread(
            self.value, path, input, data=data, default=default, seconds=seconds
        )
