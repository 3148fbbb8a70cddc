"""A run of ``conftest test``: finds, reads and checks files one after another."""

from __future__ import annotations

import re
from dataclasses import field
from fnmatch import translate
from typing import TYPE_CHECKING

from webhook.conftest.configurations import (
    COMBINED,
    STANDARD_INPUT,
    Configuration,
    FileError,
    combined,
    find,
    read,
)
from webhook.conftest.policies import (
    ConftestPolicies,
    ConftestPolicyError,
    PolicyOptions,
    load_files,
)
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.conftest.result import CheckResult


@dataclass(frozen=True, slots=True)
class TestRun:
    """The files to test, and the policies to test them against."""

    __test__ = False  # not a test case

    paths: Sequence[str]
    policies: Sequence[str]
    data: Sequence[str]
    options: PolicyOptions
    namespaces: Sequence[str] = ("main",)
    all_namespaces: bool = False
    combine: bool = False
    parser: str = ""
    ignored: Callable[[str], bool] = lambda _: False
    stdin_name: str = ""
    watched: Callable[[Sequence[str]], Iterable[str]] = lambda paths: paths
    """A wrapper of the files' iteration, for showing progress."""


@dataclass(slots=True)
class ConftestOutcome:
    """Results by namespace and file, and the errors of reading and evaluating."""

    results: list[CheckResult] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def test(run: TestRun) -> ConftestOutcome:
    """Checks every file; raises :class:`ConftestPolicyError` if policies cannot be loaded."""
    outcome = ConftestOutcome()
    unreadable: list[FileError] = []
    files = find(run.paths, run.ignored, unreadable)
    if not files and not unreadable:
        raise ConftestPolicyError("parse files: no files found")
    try:
        policies = ConftestPolicies(
            load_files(run.policies, run.data, run.options.version), run.options
        )
    except ConftestPolicyError as error:
        raise ConftestPolicyError(f"load: {error}") from None
    namespaces = _namespaces(run, policies.namespaces)
    by_namespace: dict[str, list[CheckResult]] = {namespace: [] for namespace in namespaces}
    configurations: Iterable[Configuration] = _named(
        read(run.watched(files), run.parser, unreadable), run
    )
    if run.combine:
        # A missing file would change the input: rules about all files could pass without it.
        whole = list(configurations)
        if unreadable:
            return ConftestOutcome(
                faults=[f"parse configurations: {fault}" for fault in unreadable]
            )
        configurations = [Configuration(COMBINED, [combined(whole)])]
    for configuration in configurations:
        for namespace in namespaces:
            try:
                result = policies.check(configuration.path, configuration.documents, namespace)
            except ConftestPolicyError as error:
                outcome.faults.append(f"query rule: {error}, path: {configuration.path}")
            else:
                by_namespace[namespace].append(result)
    outcome.results = [result for namespace in namespaces for result in by_namespace[namespace]]
    outcome.faults = [f"parse configurations: {fault}" for fault in unreadable] + outcome.faults
    return outcome


test.__test__ = False  # type: ignore[attr-defined]  # not a test case


def _named(configurations: Iterable[Configuration], run: TestRun) -> Iterable[Configuration]:
    for configuration in configurations:
        if run.stdin_name and configuration.path == STANDARD_INPUT:
            yield Configuration(run.stdin_name, configuration.value)
        else:
            yield configuration


def _namespaces(run: TestRun, known: Sequence[str]) -> list[str]:
    if run.all_namespaces:
        return list(known)
    if any(set("*?[") & set(pattern) for pattern in run.namespaces):
        return matching(known, run.namespaces)
    return list(run.namespaces)


def matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Returns the names that match one of the patterns (Go's ``path.Match``)."""
    compiled = [re.compile(translate(pattern.replace("[^", "[!"))) for pattern in patterns]
    return [name for name in names if any(one.fullmatch(name) for one in compiled)]
