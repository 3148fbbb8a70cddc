"""Files beside policies that are neither policies nor resources.

Objects of a test suite are examples: they are neither enforced, nor reviewed, nor data of policies.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator
from typing import Any, Final

from webhook.api.gvk import gvk_of, text
from webhook.kyverno.kinds import TEST_FILES

SUITES: Final = "test.gatekeeper.sh"

_OF_TESTS: Final = (
    "resources",
    "targetResources",
    "paramResources",
    "clusterResources",
    "context",
    "exceptions",
    "jsonPayload",
    "jsonPayloads",
    "userinfo",
    "variables",
)
"""The fields of Kyverno's tests that name files."""

IGNORED_GROUPS: Final = frozenset(
    {SUITES, "kustomize.config.k8s.io", "chainsaw.kyverno.io", "cli.kyverno.io"}
)
"""Groups of objects for tools that read files, unknown to clusters."""


def suite_inputs(documents: Iterable[tuple[str, Any]]) -> frozenset[str]:
    """Returns the input files of the suites among some documents, which have their file.

    These are the objects and inventories of their cases, and constraints expected to be refused.
    Templates and other constraints may be in force, and stay policies, even if another suite uses
    them as inputs. Kyverno's tests are inputs themselves, with all files that they name except
    policies.
    """
    inputs: set[str] = set()
    policies: set[str] = set()
    for file, suite in documents:
        if type(suite) is dict and os.path.basename(file) in TEST_FILES:  # noqa: PTH119  # as below
            inputs.update((os.path.normpath(file), *_inputs_of_test(file, suite)))
            continue
        if type(suite) is not dict or gvk_of(suite).group_kind != (SUITES, "Suite"):
            continue
        folder = os.path.dirname(file)  # noqa: PTH120  # a string is at hand
        for test in _objects(suite, "tests"):
            constraints = inputs if test.get("invalid") is True else policies
            constraints.add(_join(folder, text(test, "constraint")))
            policies.add(_join(folder, text(test, "template")))
            for case in _objects(test, "cases"):
                inputs.add(_join(folder, text(case, "object")))
                inventory = case.get("inventory")
                inputs.update(
                    _join(folder, name)
                    for name in (inventory if type(inventory) is list else ())
                    if type(name) is str
                )
    return frozenset(inputs - policies)


def _inputs_of_test(file: str, test: dict[str, Any]) -> Iterator[str]:
    """Yields the files that a test of Kyverno names, but for policies."""
    folder = os.path.dirname(file)  # noqa: PTH120  # a string is at hand
    results = _objects(test, "results")
    listed = [test.get(name) for name in _OF_TESTS]
    listed += [
        result.get(name) for result in results for name in ("patchedResources", "patchedResource")
    ]
    for value in listed:
        for name in value if type(value) is list else [value]:
            if name and type(name) is str:
                yield _join(folder, name)


def is_input(file: str, inputs: frozenset[str]) -> bool:
    """Returns whether a file is among those of :func:`suite_inputs`."""
    return bool(inputs) and os.path.normpath(file) in inputs


def _objects(owner: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = owner.get(name)
    return [item for item in items if type(item) is dict] if type(items) is list else []


def _join(folder: str, name: str) -> str:
    return os.path.normpath(os.path.join(folder, name))  # noqa: PTH118  # as above
