"""Runs test suites as gator does: the same checks in the same order, with its messages."""

from __future__ import annotations

import os.path
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission_policies.authorizer import AuthorizerAnswer
from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.api.admission import InvalidReview, read_request
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.shapes import object_of
from webhook.api.targets import declares_target
from webhook.constraint import constraint, enforcement, group, template
from webhook.constraint import expansion as expansions
from webhook.constraint.errors import (
    ConstraintFrameworkError,
    InvalidData,
    ReviewError,
    SchemaViolation,
)
from webhook.constraint.expansion import Expansion, InvalidExpansion, read_expansion_template
from webhook.constraint.limits import Limits
from webhook.constraint.review import AugmentedObject, AugmentedReview, Document
from webhook.constraint.targets.declared import InvalidTarget, read_target
from webhook.constraint.targets.documents import DocumentTarget
from webhook.exceptions.exception import InvalidException
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.mutation.snapshot import MutationSnapshot
from webhook.policies.advice import advice_on_messages
from webhook.policies.assertion import AssertionFailure
from webhook.policies.exception_advice import warnings_of_stage
from webhook.policies.extensions import foreign_warnings
from webhook.policies.manifests import Manifest, UnreadableFile, is_object, read_file, read_values
from webhook.policies.recorded_answers import InvalidAnswers, RecordedAnswers, read_answers
from webhook.policies.suite_mutation import (
    SuiteMutationError,
    expectation_fault,
    mutated_for_suite,
    read_suite_mutators,
)
from webhook.policies.suite_result import CaseResult, SuiteResult, SuiteTestResult
from webhook.policy_kinds.known import is_admission_policy, kind_of_document
from webhook.policy_kinds.parts import admission_policy_part, read_admission_policy
from webhook.policy_kinds.table import EXCEPTION_KINDS
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject, is_admission_review

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.constraint.client import Client
    from webhook.constraint.result import Responses
    from webhook.constraint.target import Target
    from webhook.external_data.exchange import Ask
    from webhook.policies.suite import Case, Suite, SuiteTest
    from webhook.policies.suite_filter import Filter
    from webhook.review.outcome import Found
    from webhook.review.policy_set import ResultStage


class _Failure(Exception):
    """The reason why a test or case cannot continue; ``file`` is an unreadable file."""

    def __init__(self, text: str, file: Path | None = None) -> None:
        super().__init__(text)
        self.file = file


class _Extensions(NamedTuple):
    """The objects of a test besides its template and constraint."""

    expansion: Expansion
    mutations: MutationSnapshot
    stages: tuple[ResultStage, ...]
    ask: Ask | None = None
    """Answers for providers, as a case has them."""
    tried: Sequence[Manifest] = ()
    """The policies of others among the test's files."""


class SuiteRunner:
    """Runs suites, each test with a client of its own."""

    def __init__(self, new_client: Callable[[Sequence[Target]], Client], selected: Filter) -> None:
        """``new_client`` makes a client that knows the given targets besides its usual ones."""
        self._new_client = new_client
        self._filter = selected

    def run(self, suite: Suite, shown_path: str = "") -> SuiteResult:
        """Runs a suite; ``shown_path`` is its path in messages."""
        path = shown_path or str(suite.path)
        if suite.skip:
            return SuiteResult(path, skipped=True)
        start = time.perf_counter()
        tests = tuple(self._run_test(suite, at) for at in range(len(suite.tests)))
        return SuiteResult(path, seconds=time.perf_counter() - start, tests=tests)

    def _run_test(self, suite: Suite, at: int) -> SuiteTestResult:
        folder, test = suite.folder, suite.tests[at]
        if test.skip or not self._filter.selects_test(test):
            return SuiteTestResult(test.name, skipped=True)
        start = time.perf_counter()
        error = ""
        cases: tuple[CaseResult, ...] = ()
        warnings: dict[str, None] = {}
        tried: Sequence[Manifest] = ()
        try:
            client = self._new_client(_targets(folder, test))
            refusal = None
            stages: tuple[ResultStage, ...] = ()
            if _is_admission_policy(folder, test):
                stages, tried, refusal = _admission_policies(folder, test)
            elif not test.mutators or test.template or test.constraint:
                _add_template(client, folder, test)
                refusal = _add_constraint(client, folder, test)
            if test.invalid:
                error = _not_invalid(refusal)
            elif not test.cases:
                error = "invalid Test: cases must be non-empty"
            elif refusal is not None:
                error = f"{test.constraint or test.template}: {refusal}"
            else:
                stages = (*_exceptions(folder, test.exceptions), *stages)
                extensions = _Extensions(
                    _expansion(folder, test.expansion),
                    _mutations(folder, test.mutators),
                    stages,
                    tried=tried,
                )
                cases = self._run_cases(client, suite, at, extensions, warnings)
                for excusing in stages:
                    if isinstance(excusing, Excusing):
                        warnings.update(dict.fromkeys(warnings_of_stage(excusing, client.snapshot)))
        except _Failure as failure:
            error = _placed(failure, suite, at)
        seconds = time.perf_counter() - start
        return SuiteTestResult(test.name, error, False, seconds, cases, tuple(warnings))

    def _run_cases(
        self,
        client: Client,
        suite: Suite,
        at: int,
        extensions: _Extensions,
        warnings: dict[str, None],
    ) -> tuple[CaseResult, ...]:
        """Runs the cases of a test; ``warnings`` receives warnings about its policies, in order."""
        folder, test = suite.folder, suite.tests[at]
        providers = {**suite.providers, **test.providers}
        results = []
        for number, case in enumerate(test.cases):
            if case.skip or not self._filter.selects_case(test.name, case.name):
                results.append(CaseResult(case.name, skipped=True))
                continue
            start = time.perf_counter()
            printed: list[str] = []
            error, case_client = "", client.copy()
            is_read = True
            try:
                beside = extensions._replace(ask=_answers(folder, {**providers, **case.providers}))
                _check_case(case_client, beside, folder, case, printed)
            except _Failure as failure:
                error, is_read = _placed(failure, suite, at, number), failure.file is None
            except AssertionFailure as failure:
                error = str(failure)
            lost = advice_on_messages(case_client.snapshot.entries)
            warnings.update((str(problem), None) for problem in lost)
            if is_read and extensions.tried:
                warned = foreign_warnings(_policies(case_client, extensions), extensions.tried)
                warnings.update(dict.fromkeys(warned))
            seconds = time.perf_counter() - start
            results.append(CaseResult(case.name, error, False, seconds, tuple(printed)))
        return tuple(results)


def _placed(failure: _Failure, suite: Suite, test: int, case: int | None = None) -> str:
    """Returns a failure with the field of the suite that names the file which cannot be read."""
    if failure.file is None or not (where := suite.naming(failure.file, test, case)):
        return str(failure)
    advice = "" if failure.file.exists() else "; correct the name, or add the file"
    return f"{where}: {failure}{advice}"


def _not_invalid(refusal: ConstraintFrameworkError | None) -> str:
    """Returns the error of a test for an invalid constraint, unless its schema did refuse it."""
    if isinstance(refusal, SchemaViolation | InvalidAdmissionPolicy):
        return ""
    outcome = "no error" if refusal is None else f"error {refusal}"
    return (
        f"constraint should have failed schema validation: got {outcome} but want "
        "schema validation failed"
    )


def _targets(folder: Path, test: SuiteTest) -> list[Target]:
    """Returns the target of the test's template, if a file declares it."""
    if not test.target:
        return []
    document, path = _first(folder, test.target, "Target")
    if not declares_target(document):
        raise _Failure(f'path "{path}": not a Target')
    try:
        return [read_target(document)]
    except InvalidTarget as error:
        raise _Failure(f"adding target: {error}") from None


def _add_template(client: Client, folder: Path, test: SuiteTest) -> None:
    if not test.template:
        raise _Failure("invalid Suite: missing template")
    document, path = _first(folder, test.template, "ConstraintTemplate")
    documents = _read(path, "ConstraintTemplate") if _is_of_group(folder, test) else [document]
    for item in documents:
        if gvk_of(item).group_kind != (template.GROUP, template.KIND):
            raise _Failure(f'path "{path}": not a ConstraintTemplate')
        try:
            client.add_template(item)
        except ConstraintFrameworkError as error:
            raise _Failure(f"{test.template}: adding template: {error}") from None


def _is_admission_policy(folder: Path, test: SuiteTest) -> bool:
    """Returns whether a test is about an API server policy instead of a template."""
    if not test.template:
        return False
    return is_admission_policy(gvk_of(_first(folder, test.template, "ConstraintTemplate")[0]))


def _admission_policies(
    folder: Path, test: SuiteTest
) -> tuple[tuple[ResultStage, ...], Sequence[Manifest], ConstraintFrameworkError | None]:
    """Returns the policies and bindings of a test's files, as a stage and as read.

    The last value is the error of a refused binding.
    """
    if not test.constraint:
        raise _Failure("invalid Suite: missing constraint: name the file of the policy's binding")
    path = _join(folder, test.constraint)
    manifests = _manifests(_join(folder, test.template), "ValidatingAdmissionPolicy")
    policies = [item.document for item in manifests]
    bound = _manifests(path, "ValidatingAdmissionPolicyBinding")
    bindings = [item.document for item in bound]
    for policy in (*policies, *bindings):
        if not is_admission_policy(gvk_of(policy)):
            raise _Failure(
                f"{gvk_of(policy)} is neither a ValidatingAdmissionPolicy or MutatingAdmissionPolicy "
                "nor a binding of one"
            )
    try:
        read = [read_admission_policy(item) for item in policies]
    except InvalidAdmissionPolicy as error:
        raise _Failure(f'adding policy from "{_join(folder, test.template)}": {error}') from None
    part = admission_policy_part()
    for policy in policies:
        part.put(policy)
    try:
        for policy in bindings:
            part.put(policy)
    except InvalidAdmissionPolicy as error:
        return (), (), error
    named = {listed.name for listed in read if not isinstance(listed, AuthorizerAnswer)}
    if all(object_of(binding.get("spec")).get("policyName") not in named for binding in bindings):
        raise _Failure(f'no binding of "{path}" names a policy of the test')
    return (part.value,), (*manifests, *bound), None


def _is_of_group(folder: Path, test: SuiteTest) -> bool:
    """Returns whether a test is about a group: its files may have several objects."""
    return bool(test.constraint) and group.is_group(
        _first(folder, test.constraint, "Constraint")[0]
    )


def _add_constraint(
    client: Client, folder: Path, test: SuiteTest
) -> ConstraintFrameworkError | None:
    """Adds the constraint; returns the error if the client refuses it."""
    if not test.constraint:
        raise _Failure("invalid Suite: missing constraint")
    document, path = _first(folder, test.constraint, "Constraint")
    documents = _read(path, "Constraint") if group.is_group(document) else [document]
    try:
        for item in sorted(documents, key=lambda item: constraint.rank(gvk_of(item))):
            if not constraint.is_constraint(gvk_of(item)):
                raise _Failure("not a Constraint")
            client.add_constraint(item)
    except ConstraintFrameworkError as error:
        return error
    return None


def _first(folder: Path, name: str, noun: str) -> tuple[dict[str, Any], Path]:
    """Returns the first object of a file."""
    path = _join(folder, name)
    documents = _read(path, noun)
    if not documents:
        raise _Failure(f'missing objects: path "{path}" defines no YAML objects')
    return documents[0], path


def _join(folder: Path, name: str) -> Path:
    return Path(os.path.normpath(folder / name.lstrip("/")))


def _read(path: Path, noun: str) -> list[dict[str, Any]]:
    return [manifest.document for manifest in _manifests(path, noun)]


def _manifests(path: Path, noun: str) -> list[Manifest]:
    try:
        return list(read_file(path, "suite"))
    except UnreadableFile as error:
        raise _Failure(f'reading {noun} from "{path}": {error.fault.message}', path) from None


def _read_any(path: Path) -> list[Any]:
    """Returns the documents of a file, of any type."""
    try:
        return [document.value for document in read_values(path)]
    except UnreadableFile as error:
        raise _Failure(f'reading object from "{path}": {error.fault.message}', path) from None


def _expansion(folder: Path, name: str) -> Expansion:
    if not name:
        return Expansion()
    path = _join(folder, name)
    documents = _read(path, "ExpansionTemplate")
    if not documents or any(
        gvk_of(document).group_kind != (expansions.GROUP, expansions.KIND) for document in documents
    ):
        raise _Failure(f'not an Expansion Template: "{path}"')
    try:
        return Expansion([read_expansion_template(document) for document in documents])
    except InvalidExpansion as error:
        raise _Failure(str(error)) from None


def _answers(folder: Path, files: Mapping[str, str]) -> Ask:
    """Reads the providers' answers from files."""
    providers = {}
    for name, file in files.items():
        try:
            providers[name] = read_answers(_join(folder, file))
        except InvalidAnswers as error:
            path = _join(folder, file)
            raise _Failure(f"answers of the provider {name}: {error}", path) from None
    return RecordedAnswers(providers, "name a file of its answers in providers")


def _mutations(folder: Path, name: str) -> MutationSnapshot:
    """Returns the mutators of a test; none without a file."""
    if not name:
        return MutationSnapshot()
    path = _join(folder, name)
    try:
        return read_suite_mutators(read_file(path, "suite"))
    except UnreadableFile as error:
        raise _Failure(f'reading mutators from "{path}": {error.fault.message}', path) from None
    except SuiteMutationError as error:
        raise _Failure(f'mutators of "{path}": {error}') from None


def _exceptions(folder: Path, name: str) -> tuple[ResultStage, ...]:
    """Reads the exceptions of a test; none without a file."""
    if not name:
        return ()
    path = _join(folder, name)
    documents = _read(path, "exceptions")
    if not documents or any(
        kind_of_document(document) not in EXCEPTION_KINDS for document in documents
    ):
        raise _Failure(f'not an exception: "{path}"')
    try:
        return (Excusing([read_exception(document) for document in documents]),)
    except InvalidException as error:
        raise _Failure(str(error)) from None


def _policies(client: Client, extensions: _Extensions) -> PolicySet:
    """Returns all that decides a case."""
    return PolicySet(
        client.snapshot, extensions.mutations, extensions.expansion, stages=extensions.stages
    )


def _mutated(
    client: Client, extensions: _Extensions, document: dict[str, Any], printed: list[str]
) -> dict[str, Any]:
    """Returns the object as it would be stored; ``printed`` receives the ignored errors."""
    policies = _policies(client, extensions)
    snapshot, mutated, again = client.snapshot, document, []
    faults: list[str] = []
    ignored: list[str] = []
    for stage in (policies.mutating, policies.in_webhook):
        if stage is not None:
            changed = stage.change(Subject(AugmentedObject(mutated)), snapshot)
            mutated = changed.object
            again.append(changed.again)
            faults += changed.faults
            ignored += changed.ignored
    try:
        mutated = mutated_for_suite(
            extensions.mutations, mutated, snapshot.namespaces, extensions.ask
        )
    except SuiteMutationError as error:
        raise _Failure(str(error)) from None
    for once_more in reversed(again):
        if once_more is not None:
            changed = once_more(mutated)
            mutated = changed.object
            faults += changed.faults
            ignored += changed.ignored
    if faults:
        raise _Failure(f"mutating {name_of(document)}: {'; '.join(dict.fromkeys(faults))}")
    printed += dict.fromkeys(ignored)
    return mutated


def _check_kind(subject: dict[str, Any], path: Path) -> None:
    """Raises :class:`_Failure` for an object whose kind or version Go cannot read."""
    if not gvk_of(subject).kind:
        raise _Failure(f'reading object from "{path}": it has no kind; add apiVersion and kind')
    version = str(subject.get("apiVersion"))
    if version.count("/") > 1:
        raise _Failure(
            f'reading object from "{path}": apiVersion "{version}" is not of the form group/version'
        )


def _check_case(
    client: Client,
    extensions: _Extensions,
    folder: Path,
    case: Case,
    printed: list[str],
) -> None:
    if not case.object:
        raise _Failure("invalid Case: must define object")
    if case.mutated and not _policies(client, extensions).mutates:
        raise _Failure(
            "invalid Case: mutated is only for tests with mutators, a MutatingAdmissionPolicy or MutatingPolicy"
        )
    if not case.assertions and not case.mutated:
        raise _Failure("invalid Case: assertions must be non-empty")
    path = _join(folder, case.object)
    entries = client.snapshot.entries
    targets = [
        target
        for entry in entries
        for target in entry.targets
        if isinstance(target, DocumentTarget)
    ]
    documents = _read_any(path) if targets else _read(path, "object")
    if not documents:
        raise _Failure(f'missing objects: path "{path}" defines no YAML objects')
    if len(documents) != 1:
        raise _Failure(
            "object file must contain exactly one object: "
            f'"{path}" defines {len(documents)} objects'
        )
    for name in case.inventory:
        _add_inventory(client, _join(folder, name))
    # For templates of a target in files and in clusters, the shape of the document decides.
    admits = any(len(entry.targets) > len(targets) for entry in entries)
    if not targets or (admits and type(documents[0]) is dict and is_object(documents[0])):
        subject = documents[0]
        _check_kind(subject, path)
        if not is_admission_review(subject):
            subject = _mutated(client, extensions, subject, printed)
        _check_mutated(folder, case, subject)
        answers = [_review(client, extensions, subject, printed)]
    else:
        policies = PolicySet(client.snapshot)
        answers = [
            _found(policies, _subject(document, printed), document.name, extensions.ask).responses
            for document in _split(targets, documents[0], case.object)
        ]
    results = [result for responses in answers for result in responses.results]
    if any(entry.template is group.TEMPLATE for entry in entries):
        # The test is not about the constraints that a group refers to.
        results = [result for result in results if result.constraint.kind == group.TEMPLATE.kind]
    messages = [result.msg for result in results]
    for assertion in case.assertions:
        assertion.check(messages)


def _check_mutated(folder: Path, case: Case, subject: dict[str, Any]) -> None:
    """Raises if the object differs from the case's expected object, if it has one."""
    if not case.mutated:
        return
    if is_admission_review(subject):
        raise _Failure("invalid Case: mutated is not for an AdmissionReview")
    expected, _ = _first(folder, case.mutated, "mutated object")
    if fault := expectation_fault(subject, expected):
        raise _Failure(fault)


def _split(targets: Sequence[DocumentTarget], value: Any, name: str) -> list[Document]:
    """Splits a document by the first target that accepts it."""
    refusals = []
    for target in targets:
        try:
            return list(target.documents(value, name))
        except ReviewError as error:
            refusals.append(str(error))
    raise _Failure("; ".join(refusals))


def _add_inventory(client: Client, path: Path) -> None:
    documents = _read(path, "inventory")
    if not documents:
        raise _Failure(f'missing objects: path "{path}" defines no YAML objects')
    for document in documents:
        try:
            client.add_data(document)
        except InvalidData as error:
            raise _Failure(
                f"unable to add object to data.inventory: {gvk_of(document)} "
                f"{namespace_of(document)}/{name_of(document)}: {error}"
            ) from None


def _review(
    client: Client,
    extensions: _Extensions,
    document: dict[str, Any],
    printed: list[str],
) -> Responses:
    """Reviews a case's object, or the request of an AdmissionReview.

    The object was mutated before, for comparison with the expected one. A request is not expanded,
    as in gator.
    """
    policies = _policies(client, extensions)
    if is_admission_review(document):
        subject = _subject(_admission_review(document), printed, expands=False)
        return _found(policies, subject, "AdmissionReview", extensions.ask).responses
    shown = f"{gvk_of(document)} {namespace_of(document)}/{name_of(document)}"
    subject = _subject(AugmentedObject(document), printed, mutates=False)
    outcome = _found(policies, subject, shown, extensions.ask)
    if outcome.unexpanded:
        name = name_of(document)
        raise _Failure(
            f"expanding resource {name}: error expanding resource {name}: {outcome.unexpanded}"
        )
    return outcome.responses


def _subject(
    value: AugmentedObject | AugmentedReview | Document,
    printed: list[str],
    *,
    mutates: bool = True,
    expands: bool = True,
) -> Subject:
    return Subject(
        value,
        point=enforcement.COMMAND_LINE,
        limits=Limits(print_=lambda _, line: printed.append(line)),
        excludes=False,
        mutates=mutates,
        expands=expands,
        releases=False,  # as in gator: policies review such updates, too
    )


def _found(policies: PolicySet, subject: Subject, shown: str, ask: Ask | None) -> Found:
    outcome = review(policies, subject, ask=ask)
    responses = outcome.responses
    if outcome.unmutated:
        raise _Failure(outcome.unmutated)
    if responses.faults:
        faults = "; ".join(str(fault) for fault in responses.faults)
        raise _Failure(f"reviewing {shown}: {faults}")
    if responses.undecided:
        undecided = "; ".join(str(item) for item in responses.undecided)
        raise _Failure(f"reviewing {shown}: not decided: {undecided}")
    return outcome


def _admission_review(document: dict[str, Any]) -> AugmentedReview:
    request = document.get("request")
    if request is None:
        raise _Failure(
            "missing an AdmissionRequest object: "
            "request did not actually pass in an AdmissionRequest"
        )
    try:
        if type(request) is not dict:
            raise InvalidReview("request must be an object")  # noqa: TRY301  # one answer for all
        read = read_request(request, api_version=str(document["apiVersion"]), strict=True)
    except InvalidReview as error:
        raise _Failure(
            "not a valid AdmissionReview object: unable to convert to an AdmissionReview object, "
            f"error: {error}"
        ) from None
    if read.object is None and read.old_object is None:
        raise _Failure(
            "no object or oldObject found to review: AdmissionRequest does not contain an "
            '"object" or "oldObject" to review'
        )
    for obj in (read.object, read.old_object):
        if obj is not None and not gvk_of(obj).kind:
            raise _Failure("object or oldObject cannot be unmarshalled: Object 'Kind' is missing")
    return AugmentedReview(read)
