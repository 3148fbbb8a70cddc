"""Reads and runs Kyverno's tests: ``kyverno-test.yaml``."""

from __future__ import annotations

import re
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from webhook.admission_policies.kinds import (
    BINDING,
    MUTATING_BINDING,
    MUTATING_POLICY,
    POLICY,
    InvalidAdmissionPolicy,
)
from webhook.api.gvk import gvk_of, name_of, plural_of
from webhook.api.gvk import namespace_of as stated_namespace
from webhook.api.scope import is_cluster_scoped
from webhook.api.shapes import object_of, objects_of
from webhook.constraint.snapshot import Snapshot
from webhook.kyverno import exception_conversion
from webhook.kyverno.conversion import converted, for_requester
from webhook.kyverno.kinds import (
    CLUSTER_POLICY,
    EXCEPTION_KINDS,
    GROUP,
    KINDS,
    MUTATING_KINDS,
    OLD_GROUP,
    OLD_POLICY,
    TEST_FILES,
    InvalidPolicy,
    why_not_run,
)
from webhook.kyverno.mutating_policy import KyvernoMutatingPolicy
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.policy import JSON, PolicyQuestion
from webhook.kyverno.policy_exception import KyvernoException
from webhook.kyverno.validating_policy import ValidatingPolicy
from webhook.kyverno.world import World, objects_known
from webhook.policies.extensions import foreign_warnings, inventory_of
from webhook.policies.field_lines import FieldLines
from webhook.policies.kyverno_files import documents_of, manifests_of, read_documents
from webhook.policies.kyverno_judging import OwnPolicy, judged, judged_document, read_own
from webhook.policies.kyverno_values import OPERATIONS, RequestValues, with_values
from webhook.policies.manifests import Manifest, find_files, is_stream
from webhook.policies.suite import InvalidSuite
from webhook.policies.suite_mutation import expectation_fault
from webhook.policies.suite_result import CaseResult, SuiteResult, SuiteTestResult
from webhook.policy_kinds.known import is_admission_policy
from webhook.printable import nearest_name
from webhook.review.admission_policies import AdmissionPolicies
from webhook.review.kyverno_policies import KyvernoPolicies
from webhook.review.policy_set import PolicySet
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from webhook.admission_policies.reading import AdmissionBinding
    from webhook.api.shapes import Json
    from webhook.policies.kyverno_judging import CaseVerdict, TestedPolicy
    from webhook.policies.suite_filter import Filter

DEFAULT_NAMESPACE: Final = "default"
_GROUP: Final = "cli.kyverno.io"
_RESULTS: Final = frozenset({"pass", "fail", "skip", "warn", "error"})
_AUTOGEN: Final = re.compile("^autogen-(cronjob-)?")
"""The prefix that Kyverno writes before the name of a rule for pod controllers."""

_FIELDS: Final = frozenset(
    [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "policies",
        "resources",
        "targetResources",
        "paramResources",
        "clusterResources",
        "variables",
        "values",
        "userinfo",
        "exceptions",
        "context",
        "results",
        "apiCallResponses",
        "globalContextEntries",
        "jsonPayload",
        "jsonPayloads",
        "httpPayloads",
        "envoyPayloads",
    ]
)
_RESULT_FIELDS: Final = frozenset(
    [
        "policy",
        "rule",
        "kind",
        "result",
        "status",
        "resource",
        "resources",
        "resourceSpecs",
        "namespace",
        "operation",
        "patchedResource",
        "patchedResources",
        "failOnMissingResources",
        "generatedResource",
        "generatedResources",
        "cloneSourceResource",
    ]
)
"""Fields of a result, those of earlier versions included."""

_MARKS: Final = frozenset(
    f"is{name}policy"
    for name in (
        "validating",
        "mutating",
        "generating",
        "deleting",
        "imagevalidating",
        "validatingadmission",
        "mutatingadmission",
    )
)
"""Fields of a result for the kind of its policy; Kyverno ignores their case."""

_LEFT_OUT: Final = "the policy is not about it"
_ELSEWHERE: Final = {
    "httpPayloads": "requests of HTTP are for Kyverno's authorizer",
    "envoyPayloads": "requests of Envoy are for Kyverno's authorizer",
}
"""Inputs of a test that no supported policy reads."""


@dataclass(frozen=True, slots=True)
class KyvernoResult:
    """The expected result of one policy for some objects."""

    policy: str
    kind: str
    resources: tuple[str, ...]
    result: str
    operation: str = ""
    rule: str = ""
    patched: str = ""
    """The file with the objects expected from a mutating policy; empty for none."""
    needs_patched: bool = False
    """Whether an object that the file lacks is an error; otherwise it is skipped."""
    at: int = 0
    """Its index among the results."""


@dataclass(frozen=True, slots=True)
class KyvernoSuite:
    """One test of a file; file names are relative to the file's folder."""

    path: Path
    name: str
    document: Json = field(repr=False)
    results: tuple[KyvernoResult, ...]
    fault: str = ""
    """Why it cannot be run."""
    line: int = 1
    """Its first line."""

    def where(self, field_path: str) -> str:
        """Returns the place of a field, for messages: file, line and path."""
        return _where(self.path, self.line, self.document, field_path)

    def run(self, shown: str, selects: Filter) -> SuiteResult:
        """Runs the suite; cases are selected by the name of the policy."""
        if self.fault and selects.selects_case(self.name, ""):
            return SuiteResult(shown, tests=(SuiteTestResult(self.name, self.fault),))
        began = time.perf_counter()
        results = [
            result for result in self.results if selects.selects_case(self.name, result.policy)
        ]
        if not results:
            return SuiteResult(shown, tests=(SuiteTestResult(self.name, skipped=True),))
        cases: tuple[CaseResult, ...] = ()
        warnings: tuple[str, ...] = ()
        error = ""
        try:
            run = _Run(self)
            warnings = tuple(run.warnings())
            cases = tuple(run.cases(results))
        except InvalidSuite as fault:
            error = str(fault)
        seconds = time.perf_counter() - began
        test = SuiteTestResult(self.name, error, False, seconds, cases, warnings)
        return SuiteResult(shown, seconds=seconds, tests=(test,))

    def given(self, name: str, *others: str) -> list[Json]:
        """Returns the objects of the files in these fields; raises :class:`InvalidSuite`."""
        return [item.document for item in self.manifests(name, *others)]

    def manifests(self, name: str, *others: str) -> list[Manifest]:
        """Returns the objects, each with its file and line; raises :class:`InvalidSuite`."""
        items: list[Manifest] = []
        for place in (name, *others):
            named = self.document.get(place) or []
            listed = [named] if type(named) is str else named
            if type(listed) is not list or any(type(file) is not str for file in listed):
                raise InvalidSuite(f"{self.where(place)}: write a list of files, by their names")
            for at, file in enumerate(listed):
                items += manifests_of(self.path.parent / file, self.where(f"{place}[{at}]"))
        return items


def find_kyverno_suites(path: Path) -> list[KyvernoSuite]:
    """Returns the suites of a file or below a folder, in order of path.

    Raises :class:`InvalidSuite`, and OSError for a missing path.
    """
    if is_stream(path):
        return []
    files = [file for file in find_files(path) if file.name in TEST_FILES]
    return [suite for file in files for suite in read_suites(file)]


def read_suites(file: Path) -> Iterator[KyvernoSuite]:
    """Returns the suites of a file, none for other files; raises :class:`InvalidSuite`, OSError.

    An unreadable test becomes a suite with its fault, and affects no other test.
    """
    for read in read_documents(file):
        document = read.value
        gvk = gvk_of(document)
        # Tests of earlier versions have no apiVersion, or another, and some have no kind.
        if gvk.kind in {"Test", ""} and gvk.group in {_GROUP, OLD_GROUP, ""}:
            name = str(name_of(document) or document.get("name") or file.parent.name)
            line = read.line
            try:
                yield KyvernoSuite(file, name, document, _results(file, line, document), line=line)
            except InvalidSuite as fault:
                yield KyvernoSuite(file, name, document, (), str(fault), line)


def _where(file: Path, line: int, document: Json, field_path: str) -> str:
    """Returns the place of a field: file, line and path; for a pipe the line of the test."""
    text = file.read_text(encoding="utf-8-sig", errors="replace") if file.is_file() else ""
    lines = FieldLines(text)
    # A single name is no path among words, but it is one among the parts of a path.
    at = lines.line(line, document, field_path, [[field_path, 0]] if "." not in field_path else "")
    return f"{file}:{at}: {field_path}"


def _results(file: Path, line: int, document: Json) -> tuple[KyvernoResult, ...]:
    def refuse(field_path: str, why: str) -> NoReturn:
        raise InvalidSuite(f"{_where(file, line, document, field_path)}: {why}")

    for name in document:
        if name not in _FIELDS:
            refuse(name, _no_field(name, _FIELDS))
    results = []
    for at, expected in enumerate(objects_of(document.get("results"))):
        for name in expected:
            if name not in _RESULT_FIELDS and name.lower() not in _MARKS:
                refuse(f"results[{at}].{name}", _no_field(name, _RESULT_FIELDS))
        result, operation = (
            expected.get("result", expected.get("status")),
            str(expected.get("operation") or ""),
        )
        if type(result) is not str or result not in _RESULTS:
            refuse(f"results[{at}].result", f"{result!r} is none of {_choices(_RESULTS)}")
        if operation not in OPERATIONS:
            choices = _choices(OPERATIONS - {""})
            refuse(f"results[{at}].operation", f"{operation!r} is none of {choices}")
        named = expected.get("resources") or (
            [expected["resource"]] if expected.get("resource") else []
        )
        if type(named) is not list:
            refuse(f"results[{at}].resources", "write a list of names, with or without a namespace")
        patched = expected.get("patchedResources") or expected.get("patchedResource") or ""
        if type(patched) is not str:
            refuse(f"results[{at}].patchedResources", "write the name of one file")
        specs = [
            f"{resource.get('namespace') or ''}/{resource.get('name') or ''}".lstrip("/")
            for resource in objects_of(expected.get("resourceSpecs"))
        ]
        results.append(
            KyvernoResult(
                str(expected.get("policy") or ""),
                str(expected.get("kind") or ""),
                (*(str(name) for name in named), *specs),
                result,
                operation,
                _AUTOGEN.sub("", str(expected.get("rule") or "")),
                patched,
                expected.get("failOnMissingResources") is True,
                at,
            )
        )
    if not results:
        refuse("results", "it is empty and expects nothing: add the expected result of each policy")
    return tuple(results)


def _no_field(name: str, known: frozenset[str]) -> str:
    near = nearest_name(name, sorted(known))
    return "there is no such field" + (f"; did you mean {near}?" if near else "")


def _choices(of: frozenset[str]) -> str:
    return ", ".join(sorted(of))


class _Run:
    """One run of a suite, with the content of its files."""

    def __init__(self, suite: KyvernoSuite) -> None:
        self._suite = suite
        self._policies: dict[str, TestedPolicy] = {}
        self._not_run: dict[str, str] = {}
        self._failed_by_errors: set[str] = set()
        self._bindings: list[AdmissionBinding] = []
        self._lacking: list[str] = []
        self._manifests = suite.manifests("policies")
        documents = [item.document for item in self._manifests]
        self._requester = _requester(suite.given("userinfo"))
        self._user = object_of(self._requester.get("userInfo"))
        for document in documents:
            self._add(document)
        self._exceptions = [
            _exception(document)
            for document in suite.given("exceptions")
            if gvk_of(document).group == GROUP and gvk_of(document).kind in EXCEPTION_KINDS
        ]
        for document in filter(exception_conversion.is_old_exception, suite.given("exceptions")):
            try:
                becomes = exception_conversion.converted_exceptions(document, documents)
                self._exceptions += map(_exception, becomes)
            except Unwritable as why:
                for name in exception_conversion.excused(document, self._policies):
                    del self._policies[name]
                    self._not_run[name] = f"not run: PolicyException {name_of(document)}: {why}"
        self._objects = suite.given("resources")
        self._parameters = [*suite.given("paramResources"), *self._objects]
        for document in documents:
            self._add_own(document, self._parameters)
        self._payloads = {
            str(name): payload
            for kind in ("jsonPayload", "jsonPayloads")
            for name, payload in _payloads(suite, kind)
        }
        self._elsewhere = next(
            (why for name, why in _ELSEWHERE.items() if suite.document.get(name)), ""
        )
        self._namespaces: dict[str, Json] = {
            name_of(item): item for item in self._objects if gvk_of(item).kind == "Namespace"
        }
        self._values = RequestValues()
        self._subresources: dict[str, Json] = {}
        self._patched: dict[str, list[Json]] = {}
        for values in (*suite.given("variables"), object_of(suite.document.get("values"))):
            self._take_values(values)
        self._world = _world(suite, self._objects)

    def warnings(self) -> Iterator[str]:
        """Warns of policies that would have no effect, or probably another effect, in a cluster."""
        used = [policy for policy in self._policies.values() if not isinstance(policy, OwnPolicy)]
        native = [
            policy.policy for policy in self._policies.values() if isinstance(policy, OwnPolicy)
        ]
        stages = (
            AdmissionPolicies([*native, *self._bindings]),
            # Excepted policies may be absent from the test, and documents are reviewed here.
            KyvernoPolicies([policy for policy in used if policy.mode != JSON]),
        )
        kinds = {policy.param_kind for policy in native}
        given = [
            parameter
            for parameter in self._parameters
            if gvk_of(parameter) in kinds and name_of(parameter)
        ]
        inventory = inventory_of(Manifest(document, "") for document in given)
        snapshot = Snapshot(targets={}, inventory=inventory)
        yield from foreign_warnings(PolicySet(snapshot, stages=stages), self._manifests)
        yield from self._lacking
        names = (*self._policies, *self._not_run)
        converted_names = {name.partition("/")[0] for name in names if "/" in name}
        yield from self._values.without_effect(
            converted_names, [name for name in names if "/" not in name]
        )

    def _add(self, document: Json) -> None:
        gvk, name = gvk_of(document), name_of(document)
        if gvk.group == GROUP and gvk.kind in KINDS:
            try:
                self._policies[name] = _compiled(document)
            except InvalidPolicy as error:
                self._not_run[name] = f"{gvk.kind} {name}: {error}"
        elif gvk.group == OLD_GROUP and gvk.kind in {CLUSTER_POLICY, OLD_POLICY}:
            self._convert(document)
        elif why := why_not_run(document):
            self._not_run[name] = f"{gvk.kind} {name} is not run: {why}"
        elif is_admission_policy(gvk) and gvk.kind in {BINDING, MUTATING_BINDING}:
            try:
                self._bindings.append(self._read_own(document))
            except InvalidAdmissionPolicy as error:
                policy = str(object_of(document.get("spec")).get("policyName"))
                self._not_run[policy] = f"{gvk.kind} {name}: {error}"

    def _add_own(self, document: Json, parameters: Sequence[Json]) -> None:
        """Takes a policy of the API server's own, with the bindings that name it."""
        gvk, name = gvk_of(document), name_of(document)
        if not is_admission_policy(gvk) or gvk.kind not in {POLICY, MUTATING_POLICY}:
            return
        bound = tuple(
            binding
            for binding in self._bindings
            if (binding.policy_kind, binding.policy) == (gvk.kind, name)
        )
        try:
            self._policies[name] = OwnPolicy(self._read_own(document), bound, parameters)
        except InvalidAdmissionPolicy as error:
            self._not_run[name] = f"{gvk.kind} {name}: {error}"

    def _read_own(self, document: Json) -> Any:
        """Returns a policy of the API server's own, or a binding; warns of absent fields."""
        policy, fault = read_own(document)
        if fault:
            place = next(manifest for manifest in self._manifests if manifest.document is document)
            title = f"{place.file}:{place.line}: {gvk_of(document).kind}/{name_of(document)}"
            self._lacking.append(f"{title}: an API server would refuse it: {fault}")
        return policy

    def _convert(self, document: Json) -> None:
        """Converts the rules of a ClusterPolicy, or a Policy of a namespace, that CEL policies can express.

        In Kyverno, what cannot be evaluated of ``validate.cel``, or read at the place of a pattern,
        is a failure and no error. It is denied here as well, unless a pattern's policy has
        failurePolicy Ignore.
        """
        spec, kind = object_of(document.get("spec")), document["kind"]
        failing = ["cel"]
        if spec.get("failurePolicy") != "Ignore":
            failing += ["pattern", "anyPattern"]
        self._failed_by_errors |= {
            f"{name_of(document)}/{policy_rule.get('name')}"
            for policy_rule in objects_of(spec.get("rules"))
            if any(object_of(policy_rule.get("validate")).get(name) for name in failing)
        }
        for rule, policy in converted(for_requester(document, self._requester)):
            name = f"{name_of(document)}/{rule}"
            if isinstance(policy, Unwritable):
                self._not_run[name] = f"{kind} {name} is not run: {policy}"
                continue
            try:
                self._policies[name] = _compiled(policy)
            except InvalidPolicy as error:
                self._not_run[name] = f"{kind} {name} is not run: {error}"

    def _take_values(self, values: Json) -> None:
        spec = object_of(values.get("spec")) or values
        where = self._suite.where("values" if "values" in self._suite.document else "variables")
        self._values.take(spec, where)
        for item in objects_of(spec.get("namespaces")):
            self._namespaces[name_of(item)] = item
        for item in objects_of(spec.get("namespaceSelector")):
            metadata = {"name": item.get("name"), "labels": item.get("labels") or {}}
            self._namespaces[str(item.get("name"))] = {"metadata": metadata}
        for item in objects_of(spec.get("subresources")):
            named = object_of(item.get("subresource"))
            self._subresources[str(named.get("kind"))] = item

    def cases(self, results: Iterable[KyvernoResult]) -> Iterator[CaseResult]:
        for expected in results:
            policy = self._named(expected)
            for named in expected.resources or self._all_names(policy, expected.kind):
                began = time.perf_counter()
                error = self._wrong(policy, expected, named)
                is_left_out = error == _LEFT_OUT
                name = f"{policy}: {expected.kind} {named}".rstrip()
                title = f"{name} is to {expected.result}"
                seconds = time.perf_counter() - began
                yield CaseResult(title, "" if is_left_out else error, is_left_out, seconds)

    def _named(self, expected: KyvernoResult) -> str:
        """Returns the policy's name, with the rule's name if it has several rules."""
        name = expected.policy.rpartition("/")[2]
        if not expected.rule and name not in self._policies:
            rules = [policy for policy in self._policies if policy.startswith(f"{name}/")]
            return rules[0] if len(rules) == 1 else name
        with_rule = f"{name}/{expected.rule}"
        return with_rule if with_rule in {*self._policies, *self._not_run} else name

    def _all_names(self, policy: str, kind: str) -> list[str]:
        named = [name_of(item) for item in self._objects if kind in {"", gvk_of(item).kind}]
        if _is_of_documents(self._policies.get(policy)):
            named = [*self._payloads, *named]
        return named or [""]  # otherwise nothing would be checked, and the test would pass

    def _wrong(self, name: str, expected: KyvernoResult, named: str) -> str:
        """Returns the difference between verdict and expectation; "" for none.

        Kyverno counts an object that the policy does not match as a pass; here it is skipped.
        """
        if name in self._not_run:
            return self._not_run[name]
        policy = self._policies.get(name)
        if policy is None:
            return self._unknown(name, expected)
        if isinstance(policy, ValidatingPolicy) and policy.mode == JSON and named in self._payloads:
            question = PolicyQuestion({}, None, self._world, self._exceptions)
            verdict = judged_document(policy, self._payloads[named], question)
            return _difference(expected.result, verdict)
        objects = [item for item in self._objects if _is_named(item, expected.kind, named)]
        if not objects:
            if self._elsewhere:
                return f"not run: {self._elsewhere}"
            where = self._suite.where(f"results[{expected.at}].resources")
            return f"{where}: no {expected.kind or 'object'} {named} is in the files of resources"
        for item in objects:
            request = self._request(name, item, expected.operation)
            question = PolicyQuestion(request, self._namespace(item), self._world, self._exceptions)
            verdict = judged(policy, question)
            is_about = verdict.is_about and "/" not in name
            if expected.result == "pass" and verdict.result == "skip" and not is_about:
                return _LEFT_OUT
            if verdict.result == "error" and name in self._failed_by_errors and not verdict.lacks:
                verdict = verdict._replace(result="fail")
            wrong = _difference(expected.result, verdict) if verdict.result == "error" else ""
            patched = verdict.patched if verdict.is_about and expected.patched else None
            if not wrong and patched is not None:
                wrong = self._wrong_object(expected, patched)
            if wrong := wrong or _difference(expected.result, verdict):
                return wrong
        return ""

    def _unknown(self, name: str, expected: KyvernoResult) -> str:
        """Describes a policy, or a rule, that no file has."""
        where = self._suite.where(f"results[{expected.at}].policy")
        known = sorted({*self._policies, *self._not_run})
        rules = [name_ for name_ in known if name_.startswith(f"{name}/")]
        if rules and expected.rule:
            has = ", ".join(rules)
            return f"{where}: policy {name} has no rule {expected.rule}; it has {has}"
        listed = f"they have {', '.join(known)}" if known else "they have none that is tested"
        return f"{where}: no policy {name} is in the files of policies; {listed}"

    def _wrong_object(self, expected: KyvernoResult, patched: Json) -> str:
        """Returns the difference between an object and the file's object; "" for none.

        Kyverno skips an object that the file lacks.
        """
        where = self._suite.where(f"results[{expected.at}].patchedResources")
        if expected.patched not in self._patched:
            file = self._suite.path.parent / expected.patched
            self._patched[expected.patched] = _objects(file, where)
        named = _identity(patched)
        for document in self._patched[expected.patched]:
            if _identity(document) == named:
                fault = expectation_fault(_tidy(placed(patched)), _tidy(placed(document)))
                return f"{where}: {fault}" if fault else ""
        if expected.needs_patched:
            return f"{where}: {expected.patched} has no {' '.join(filter(None, named))}"
        return _LEFT_OUT

    def _request(self, name: str, item: Json, operation: str) -> Json:
        """Returns the request on an object; ``name`` is a policy's, with a slash if converted."""
        policy, is_converted, _ = name.partition("/")
        gvk, item = gvk_of(item), placed(item)
        values = self._values.of(policy, item)
        operation = operation or str(values["request.operation"])
        kind = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
        stated = self._subresources.get(gvk.kind, {})
        of, parent = object_of(stated.get("subresource")), object_of(stated.get("parentResource"))
        plural, _, part = str(of.get("name") or plural_of(gvk.kind)).partition("/")
        group, version = gvk.group, gvk.version
        if parent:  # names in a rule: Deployments are of apps, and their Scale of autoscaling
            group, version = str(parent.get("group") or ""), str(parent.get("version") or version)
        resource = {"group": group, "version": version, "resource": plural}
        is_deleted = operation == "DELETE"
        request = {
            "kind": kind,
            "resource": resource,
            "subResource": part,
            "name": name_of(item),
            "namespace": namespace_of(item),
            "operation": operation,
            "userInfo": self._user,
            "object": None if is_deleted else item,
            "oldObject": item if operation not in {"CREATE", "CONNECT"} else None,
        }
        return with_values(request, values) if is_converted else request

    def _namespace(self, item: Json) -> Json | None:
        name = namespace_of(item)
        if not name:
            return None
        return self._namespaces.get(name) or {"metadata": {"name": name}}


def _compiled(document: Json) -> ValidatingPolicy | KyvernoMutatingPolicy:
    """Returns a Kyverno policy in CEL; raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
    is_mutating = gvk_of(document).kind in MUTATING_KINDS
    return KyvernoMutatingPolicy(document) if is_mutating else ValidatingPolicy(document)


def _difference(expected: str, verdict: CaseVerdict) -> str:
    if verdict.result == expected:
        return ""
    why = f": {verdict.message}" if verdict.message else ""
    return f"expected {expected}, got {verdict.result}{why}"


def _is_of_documents(policy: TestedPolicy | None) -> bool:
    return isinstance(policy, ValidatingPolicy) and policy.mode == JSON


def _identity(item: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Returns the key of an object among the objects of a file."""
    gvk = gvk_of(item)
    return gvk.group_version, gvk.kind, namespace_of(item), name_of(item)


def _tidy(item: Json) -> Json:
    """Returns an object without empty fields, which Kyverno does not compare."""
    kept = _without_empty(item)
    return kept if type(kept) is dict else {}


def _without_empty(value: Any) -> Any:
    if type(value) is dict:
        kept = {name: _without_empty(part) for name, part in value.items()}
        return {name: part for name, part in kept.items() if part is not None} or None
    if type(value) is list:
        return [part for part in map(_without_empty, value) if part is not None] or None
    return value


def _exception(document: Json) -> KyvernoException:
    try:
        return KyvernoException(document)
    except InvalidPolicy as error:
        raise InvalidSuite(f"PolicyException {name_of(document)}: {error}") from None


def _is_named(item: Json, kind: str, named: str) -> bool:
    namespace, _, name = named.rpartition("/")
    if kind not in {"", gvk_of(item).kind} or name_of(item) != name:
        return False
    return namespace in {"", namespace_of(item)}


def _payloads(suite: KyvernoSuite, kind: str) -> Iterator[tuple[str, Json]]:
    """Yields the documents of a test that are no objects, by the names of their files."""
    named = suite.document.get(kind) or []
    for name in [named] if type(named) is str else named:
        for read in documents_of(suite.path.parent / str(name), suite.where(kind)):
            yield str(name), read.value


def _requester(files: Iterable[Json]) -> Json:
    """Reads the requester of a UserInfo: user and roles; empty without a UserInfo."""
    for file in files:
        given = file if "spec" not in file else object_of(file["spec"])
        requester = {
            name: given[name] for name in ("userInfo", "roles", "clusterRoles") if given.get(name)
        }
        if requester:
            return requester
    return {}


def _world(suite: KyvernoSuite, native: Iterable[Json]) -> World:
    """Reads the context of policies: the test's, or its objects if it simulates a cluster."""
    objects: list[Json] = []
    images: dict[str, Json] = {}
    for context in suite.given("context"):
        spec = object_of(context.get("spec"))
        objects += objects_of(spec.get("resources"))
        images |= {str(image.get("image")): image for image in objects_of(spec.get("images"))}
    for cluster in suite.given("clusterResources"):
        objects += objects_of(object_of(cluster.get("spec")).get("resources"))
    if suite.document.get("clusterResources"):
        objects += [*native, *suite.given("targetResources", "paramResources")]
    return World(
        objects_known(objects),
        time.time_ns(),
        images=images,
        answers=dict(_answers(suite)),
        entries=dict(_entries(suite)),
        is_whole=True,
    )


def _answers(suite: KyvernoSuite) -> Iterator[tuple[str, Json]]:
    """Reads the answers of servers, by ``METHOD:URL`` or URL."""
    for call in objects_of(suite.document.get("apiCallResponses")):
        url = str(call.get("url") or call.get("urlPath") or "").strip()
        method = str(call.get("method") or "").strip().upper()
        response = object_of(call.get("response"))
        status = response.get("statusCode") or 200
        answer = {"body": response.get("body"), "statusCode": status}
        yield (f"{method}:{url}" if method else url), answer


def _entries(suite: KyvernoSuite) -> Iterator[tuple[str, Any]]:
    """The entries of the global context, by name."""
    for at, entry in enumerate(objects_of(suite.document.get("globalContextEntries"))):
        value: Any = entry.get("data")
        if value is None:
            value = list(objects_of(entry.get("resources")))
            for file in entry.get("resourceFiles") or []:
                where = suite.where(f"globalContextEntries[{at}].resourceFiles")
                value += _objects(suite.path.parent / str(file), where)
        value = _reached(value, entry.get("fieldPath"), at)
        for projection in objects_of(entry.get("projections")):
            part = _reached(value, projection.get("path"), at)
            value = {**value, str(projection.get("name")): part} if type(value) is dict else value
        yield str(entry.get("name") or ""), value


def _reached(value: Any, path: Any, at: int) -> Any:
    """Returns the value at a path of names; raises :class:`InvalidSuite` for another language."""
    for name in str(path or "").strip().split("."):
        if not name:
            continue
        if not name.isidentifier():
            raise InvalidSuite(f"globalContextEntries[{at}]: {path} is more than a path of names")
        value = value.get(name) if type(value) is dict else None
    return value


def _objects(file: Path, where: str) -> list[Json]:
    """Returns the objects of a file, or of the files in a folder; raises :class:`InvalidSuite`."""
    return [item.document for item in manifests_of(file, where)]


def namespace_of(item: Mapping[str, Any]) -> str:
    """Returns the namespace of an object; ``default`` for an object without one."""
    gvk = gvk_of(item)
    if is_cluster_scoped(gvk.group, gvk.kind):
        return ""
    return stated_namespace(item) or DEFAULT_NAMESPACE


def placed(item: Json) -> Json:
    """Returns the object with the namespace that it would get."""
    namespace = namespace_of(item)
    if not namespace or stated_namespace(item):
        return item
    return {**item, "metadata": {**object_of(item.get("metadata")), "namespace": namespace}}
