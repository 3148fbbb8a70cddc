"""Kyverno's tests: ``kyverno-test.yaml`` read, and run."""

from __future__ import annotations

import re
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import GROUP as API_SERVERS
from webhook.api.documents import InvalidDocument, read_objects
from webhook.api.gvk import gvk_of, name_of, plural_of
from webhook.api.gvk import namespace_of as stated_namespace
from webhook.api.scope import is_cluster_scoped
from webhook.api.shapes import object_of, objects_of
from webhook.kyverno.conversion import converted
from webhook.kyverno.kinds import (
    CLUSTER_POLICY,
    EXCEPTION_KINDS,
    GROUP,
    KINDS,
    OLD_GROUP,
    TEST_FILES,
    InvalidPolicy,
    why_not_run,
)
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.policy import JSON, PolicyQuestion
from webhook.kyverno.policy_exception import KyvernoException
from webhook.kyverno.validating_policy import SKIPPED, ValidatingPolicy
from webhook.kyverno.world import World, objects_known
from webhook.policies.manifests import find_files, is_stream
from webhook.policies.suite import InvalidSuite
from webhook.policies.suite_result import CaseResult, SuiteResult, SuiteTestResult
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from webhook.api.shapes import Json
    from webhook.policies.suite_filter import Filter

DEFAULT_NAMESPACE: Final = "default"
_GROUP: Final = "cli.kyverno.io"
_RESULTS: Final = frozenset({"pass", "fail", "skip", "warn", "error"})
_OPERATIONS: Final = frozenset({"", "CREATE", "UPDATE", "DELETE", "CONNECT"})
_AUTOGEN: Final = re.compile("^autogen-(cronjob-)?")
"""What Kyverno writes before the name of a rule for pod controllers."""

_LEFT_OUT: Final = "the policy is not about it"
_ELSEWHERE: Final = {
    "httpPayloads": "requests of HTTP are for Kyverno's authorizer",
    "envoyPayloads": "requests of Envoy are for Kyverno's authorizer",
}
"""Inputs of a test that no policy here is about."""


@dataclass(frozen=True, slots=True)
class KyvernoResult:
    """What one policy is expected to say of some objects."""

    policy: str
    kind: str
    resources: tuple[str, ...]
    result: str
    operation: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class KyvernoSuite:
    """One test of a file; names of files in it begin beside it."""

    path: Path
    name: str
    document: Json = field(repr=False)
    results: tuple[KyvernoResult, ...]
    fault: str = ""
    """Why it cannot be run."""

    def run(self, shown: str, wanted: Filter) -> SuiteResult:
        """What came of it; a case is selected by the name of its policy."""
        if self.fault and wanted.selects_case(self.name, ""):
            return SuiteResult(shown, tests=(SuiteTestResult(self.name, self.fault),))
        began = time.perf_counter()
        results = [one for one in self.results if wanted.selects_case(self.name, one.policy)]
        if not results:
            return SuiteResult(shown, tests=(SuiteTestResult(self.name, skipped=True),))
        cases: tuple[CaseResult, ...] = ()
        error = ""
        try:
            cases = tuple(_Run(self).cases(results))
        except InvalidSuite as fault:
            error = str(fault)
        seconds = time.perf_counter() - began
        test = SuiteTestResult(self.name, error, seconds=seconds, cases=cases)
        return SuiteResult(shown, seconds=seconds, tests=(test,))

    def given(self, name: str, *others: str) -> list[Json]:
        """The objects of the files that a field names; raises :class:`InvalidSuite`."""
        items: list[Json] = []
        for one in (name, *others):
            named = self.document.get(one) or []
            listed = [named] if type(named) is str else named
            if type(listed) is not list:
                raise InvalidSuite(f"{self.path}: {one} is no list of files")
            for at, file in enumerate(listed):
                items += _objects(self.path.parent / str(file), f"{one}[{at}]")
        return items


def find_kyverno_suites(path: Path) -> list[KyvernoSuite]:
    """The suites of a file or below a folder, in order of path.

    Raises :class:`InvalidSuite`, and OSError where there is no such path.
    """
    if is_stream(path):
        return []
    files = [file for file in find_files(path) if file.name in TEST_FILES]
    return [suite for file in files for suite in read_suites(file)]


def read_suites(file: Path) -> Iterator[KyvernoSuite]:
    """The suites of a file, none where it is something else; raises :class:`InvalidSuite`, OSError.

    A test that cannot be read is a suite with its fault, which costs no other.
    """
    for document in _documents(file):
        gvk = gvk_of(document)
        # Tests of earlier versions have no apiVersion, and some no kind.
        if gvk.kind in {"Test", ""} and gvk.group in {_GROUP, ""}:
            name = str(name_of(document) or document.get("name") or file.parent.name)
            try:
                yield KyvernoSuite(file, name, document, _results(file, document))
            except InvalidSuite as fault:
                yield KyvernoSuite(file, name, document, (), str(fault))


def _results(file: Path, document: Json) -> tuple[KyvernoResult, ...]:
    results = []
    for at, one in enumerate(objects_of(document.get("results"))):
        result, operation = one.get("result", one.get("status")), str(one.get("operation") or "")
        if result not in _RESULTS:
            raise InvalidSuite(f"{file}: results[{at}].result: {result!r} is none of {_choices()}")
        if operation not in _OPERATIONS:
            raise InvalidSuite(f"{file}: results[{at}].operation: {operation!r} is no operation")
        named = one.get("resources") or ([one["resource"]] if one.get("resource") else [])
        specs = [
            f"{one.get('namespace') or ''}/{one.get('name') or ''}".lstrip("/")
            for one in objects_of(one.get("resourceSpecs"))
        ]
        results.append(
            KyvernoResult(
                str(one.get("policy") or ""),
                str(one.get("kind") or ""),
                (*(str(name) for name in named), *specs),
                result,
                operation,
                _AUTOGEN.sub("", str(one.get("rule") or "")),
            )
        )
    if not results:
        raise InvalidSuite(f"{file}: results is empty: nothing is expected")
    return tuple(results)


def _choices() -> str:
    return ", ".join(sorted(_RESULTS))


class _Run:
    """What the files of a suite hold."""

    def __init__(self, suite: KyvernoSuite) -> None:
        self._policies: dict[str, ValidatingPolicy] = {}
        self._not_run: dict[str, str] = {}
        self._cel_rules: set[str] = set()
        for document in suite.given("policies"):
            self._add(document)
        self._exceptions = [
            _exception(document)
            for document in suite.given("exceptions")
            if gvk_of(document).group == GROUP and gvk_of(document).kind in EXCEPTION_KINDS
        ]
        if any(gvk_of(one).group == OLD_GROUP for one in suite.given("exceptions")):
            for name in [one for one in self._policies if "/" in one]:
                del self._policies[name]
                why = "PolicyExceptions of kyverno.io excuse rules, which are converted here"
                self._not_run[name] = f"ClusterPolicy {name} is not run: {why}"
        self._objects = suite.given("resources")
        self._payloads = {
            str(name): one
            for kind in ("jsonPayload", "jsonPayloads")
            for name, one in _payloads(suite, kind)
        }
        self._elsewhere = next(
            (why for name, why in _ELSEWHERE.items() if suite.document.get(name)), ""
        )
        self._namespaces: dict[str, Json] = {
            name_of(item): item for item in self._objects if gvk_of(item).kind == "Namespace"
        }
        self._values: list[Json] = []
        self._operation = "CREATE"
        for values in (*suite.given("variables"), object_of(suite.document.get("values"))):
            self._take_values(values)
        self._user = _user(suite.given("userinfo"))
        self._world = _world(suite, self._objects)

    def _add(self, document: Json) -> None:
        gvk, name = gvk_of(document), name_of(document)
        if gvk.group == GROUP and gvk.kind in KINDS:
            try:
                self._policies[name] = ValidatingPolicy(document)
            except InvalidPolicy as error:
                self._not_run[name] = f"{gvk.kind} {name}: {error}"
        elif (gvk.group, gvk.kind) == (OLD_GROUP, CLUSTER_POLICY):
            self._convert(document)
        elif why := why_not_run(document):
            self._not_run[name] = f"{gvk.kind} {name} is not run: {why}"
        elif gvk.group == API_SERVERS:
            why = "name it in a Suite of test.gatekeeper.sh, with its binding"
            self._not_run.setdefault(
                name, f"{gvk.kind} {name} is not run by a test of Kyverno: {why}"
            )

    def _convert(self, document: Json) -> None:
        """Take the rules of a ClusterPolicy that can be written as policies in CEL.

        An error in an expression of ``validate.cel`` is a failure there, and no error.
        """
        rules = objects_of(object_of(document.get("spec")).get("rules"))
        self._cel_rules |= {
            f"{name_of(document)}/{one.get('name')}"
            for one in rules
            if object_of(one.get("validate")).get("cel")
        }
        for rule, made in converted(document):
            name = f"{name_of(document)}/{rule}"
            if isinstance(made, Unwritable):
                self._not_run[name] = f"ClusterPolicy {name} is not run: {made}"
                continue
            try:
                self._policies[name] = ValidatingPolicy(made)
            except InvalidPolicy as error:
                self._not_run[name] = f"ClusterPolicy {name} is not run: {error}"

    def _take_values(self, values: Json) -> None:
        spec = object_of(values.get("spec")) or values
        for item in objects_of(spec.get("namespaces")):
            self._namespaces[name_of(item)] = item
        for item in objects_of(spec.get("namespaceSelector")):
            metadata = {"name": item.get("name"), "labels": item.get("labels") or {}}
            self._namespaces[str(item.get("name"))] = {"metadata": metadata}
        self._values += objects_of(spec.get("policies"))
        given = object_of(spec.get("globalValues")).get("request.operation")
        self._operation = str(given or self._operation)

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
        """The name of a policy here, with that of a rule where it has several."""
        name = expected.policy.rpartition("/")[2]
        if not expected.rule and name not in self._policies:
            rules = [one for one in self._policies if one.startswith(f"{name}/")]
            return rules[0] if len(rules) == 1 else name
        with_rule = f"{name}/{expected.rule}"
        return with_rule if with_rule in {*self._policies, *self._not_run} else name

    def _all_names(self, policy: str, kind: str) -> list[str]:
        named = [name_of(item) for item in self._objects if kind in {"", gvk_of(item).kind}]
        known = self._policies.get(policy)
        if known is not None and known.mode == JSON:
            named = [*self._payloads, *named]
        return named or [""]  # else nothing would be asked, and all would be well

    def _wrong(self, name: str, expected: KyvernoResult, named: str) -> str:
        """How what a policy says differs; "" where it does not.

        Kyverno counts an object that a policy is not about as one that passes: it is left out here.
        """
        if name in self._not_run:
            return self._not_run[name]
        policy = self._policies.get(name)
        if policy is None:
            rules = [one for one in {*self._policies, *self._not_run} if one.startswith(f"{name}/")]
            if rules and expected.rule:
                return (
                    f"policy {name} has no rule {expected.rule}; it has {', '.join(sorted(rules))}"
                )
            return f"no policy {name} is in the files of policies"
        if policy.mode == JSON and named in self._payloads:
            asked = PolicyQuestion({}, None, self._world, self._exceptions)
            verdict = policy.say_of_json(self._payloads[named], asked)
            return _difference(expected.result, verdict.result, verdict.message)
        objects = [item for item in self._objects if _is_named(item, expected.kind, named)]
        if not objects:
            if self._elsewhere:
                return f"not run: {self._elsewhere}"
            return f"no {expected.kind or 'object'} {named} is in the files of resources"
        for item in objects:
            request = self._request(name.partition("/")[0], item, expected.operation)
            asked = PolicyQuestion(request, self._namespace(item), self._world, self._exceptions)
            is_json = policy.mode == JSON
            verdict = policy.say_of_json(item, asked) if is_json else policy.say(asked)
            is_about = is_json or ("/" not in name and policy.is_about(asked))
            if expected.result == "pass" and verdict is SKIPPED and not is_about:
                return _LEFT_OUT
            is_failure = verdict.result == "error" and name in self._cel_rules
            result = "fail" if is_failure and not verdict.missing else verdict.result
            if wrong := _difference(expected.result, result, verdict.message):
                return wrong
        return ""

    def _request(self, policy: str, item: Json, operation: str) -> Json:
        gvk, item = gvk_of(item), placed(item)
        operation = operation or self._stated_operation(policy, item)
        kind = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
        resource = {"group": gvk.group, "version": gvk.version, "resource": plural_of(gvk.kind)}
        is_deleted = operation == "DELETE"
        return {
            "kind": kind,
            "resource": resource,
            "name": name_of(item),
            "namespace": namespace_of(item),
            "operation": operation,
            "userInfo": self._user,
            "object": None if is_deleted else item,
            "oldObject": item if operation not in {"CREATE", "CONNECT"} else None,
        }

    def _stated_operation(self, policy: str, item: Json) -> str:
        """What the values say of an object under a policy, or of all."""
        operation = self._operation
        for of in self._values:
            for one in objects_of(of.get("resources")) if of.get("name") == policy else ():
                if one.get("name") == name_of(item):
                    values = object_of(one.get("values"))
                    operation = str(values.get("request.operation", operation))
        return operation

    def _namespace(self, item: Json) -> Json | None:
        name = namespace_of(item)
        if not name:
            return None
        return self._namespaces.get(name) or {"metadata": {"name": name}}


def _difference(expected: str, result: str, message: str) -> str:
    if result == expected:
        return ""
    why = f": {message}" if message else ""
    return f"expected {expected}, got {result}{why}"


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
    """The documents of a test that are no objects, by the names of their files."""
    named = suite.document.get(kind) or []
    for name in [named] if type(named) is str else named:
        for document in _documents_of(suite.path.parent / str(name), kind):
            yield str(name), document


def _user(files: Iterable[Json]) -> Json:
    """Who asks: the user of a UserInfo."""
    for one in files:
        given = one.get("userInfo") or object_of(one.get("spec")).get("userInfo")
        if type(given) is dict:
            return given
    return {}


def _world(suite: KyvernoSuite, own: Iterable[Json]) -> World:
    """What policies may ask: the test's context, or, where it plays a cluster, its objects."""
    objects: list[Json] = []
    images: dict[str, Json] = {}
    for context in suite.given("context"):
        spec = object_of(context.get("spec"))
        objects += objects_of(spec.get("resources"))
        images |= {str(one.get("image")): one for one in objects_of(spec.get("images"))}
    for cluster in suite.given("clusterResources"):
        objects += objects_of(object_of(cluster.get("spec")).get("resources"))
    if suite.document.get("clusterResources"):
        objects += [*own, *suite.given("targetResources", "paramResources")]
    return World(
        objects_known(objects),
        time.time_ns(),
        images=images,
        answers=dict(_answers(suite)),
        entries=dict(_entries(suite)),
        is_whole=True,
    )


def _answers(suite: KyvernoSuite) -> Iterator[tuple[str, Json]]:
    """What servers answer, by ``METHOD:URL`` or URL."""
    for one in objects_of(suite.document.get("apiCallResponses")):
        url = str(one.get("url") or one.get("urlPath") or "").strip()
        method = str(one.get("method") or "").strip().upper()
        response = object_of(one.get("response"))
        status = response.get("statusCode") or 200
        answer = {"body": response.get("body"), "statusCode": status}
        yield (f"{method}:{url}" if method else url), answer


def _entries(suite: KyvernoSuite) -> Iterator[tuple[str, Any]]:
    """The entries of the global context, by name."""
    for at, one in enumerate(objects_of(suite.document.get("globalContextEntries"))):
        value: Any = one.get("data")
        if value is None:
            value = list(objects_of(one.get("resources")))
            for file in one.get("resourceFiles") or []:
                value += _objects(suite.path.parent / str(file), f"globalContextEntries[{at}]")
        value = _reached(value, one.get("fieldPath"), at)
        for projection in objects_of(one.get("projections")):
            part = _reached(value, projection.get("path"), at)
            value = {**value, str(projection.get("name")): part} if type(value) is dict else value
        yield str(one.get("name") or ""), value


def _reached(value: Any, path: Any, at: int) -> Any:
    """What stands at a path of names; raises :class:`InvalidSuite` for one of another language."""
    for name in str(path or "").strip().split("."):
        if not name:
            continue
        if not name.isidentifier():
            raise InvalidSuite(f"globalContextEntries[{at}]: {path} is more than a path of names")
        value = value.get(name) if type(value) is dict else None
    return value


def _objects(file: Path, where: str) -> list[Json]:
    """The objects of a file, or of the files in a folder; raises :class:`InvalidSuite`."""
    items: list[Json] = []
    for one in _files(file):
        for document in _documents_of(one, where):
            many = document.get("items") if gvk_of(document).kind.endswith("List") else None
            items += objects_of(many) if many is not None else [document]
    return items


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [one for one in find_files(path) if one.name not in TEST_FILES]
    is_pattern = any(mark in path.name for mark in "*?[") and not path.exists()
    return sorted(path.parent.glob(path.name)) or [path] if is_pattern else [path]


def _documents_of(file: Path, where: str) -> list[Json]:
    try:
        return _documents(file)
    except OSError as error:
        raise InvalidSuite(f"{where}: {file}: {error.strerror}") from None


def _documents(file: Path) -> list[Json]:
    try:
        read = read_objects(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidSuite(f"{file}: it is not UTF-8") from None
    except InvalidDocument as error:
        raise InvalidSuite(f"{file}: {error}") from None
    return [document.value for document in read]


def namespace_of(item: Mapping[str, Any]) -> str:
    """The namespace of an object; that of one that names none is ``default``."""
    gvk = gvk_of(item)
    if is_cluster_scoped(gvk.group, gvk.kind):
        return ""
    return stated_namespace(item) or DEFAULT_NAMESPACE


def placed(item: Json) -> Json:
    """The object with the namespace that it would get."""
    namespace = namespace_of(item)
    if not namespace or stated_namespace(item):
        return item
    return {**item, "metadata": {**object_of(item.get("metadata")), "namespace": namespace}}
