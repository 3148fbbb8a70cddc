"""Every value of the chart does what it says, whatever the others are, or Helm says that it cannot."""

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart_pages import BOUNDS
from tests.chart_values import (
    DEFAULTS,
    ENABLED,
    OTHERS,
    Values,
    as_document,
    complaints,
    rows,
    takes_effect,
    with_requirements,
)
from tests.manifests import CHART, NAMESPACE
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs

ROWS = list(rows())


def test_each_value_has_others_and_each_two_occur_in_all_combinations():
    assert OTHERS.keys() == DEFAULTS.keys()
    assert [path for path, others in OTHERS.items() if DEFAULTS[path] in others or not others] == []
    assert [complaints(row) for row in [*ROWS, ENABLED]] == [[]] * (len(ROWS) + 1)
    pairs: dict[tuple[str, str], set[tuple[bool, bool]]] = {}
    for row in ROWS:
        varied = {path: row[path] != DEFAULTS[path] for path in row}
        for (one, first), (other, second) in itertools.combinations(sorted(varied.items()), 2):
            pairs.setdefault((one, other), set()).add((first, second))
    lacking = {pair for pair, seen in pairs.items() if len(seen) < 4 and not depends(*pair)}
    assert lacking == set()


def depends(one: str, other: str) -> bool:
    """Whether values make each other right or wrong: not all of their combinations are permitted."""
    for first in [DEFAULTS[one], *OTHERS[one]]:
        for second in [DEFAULTS[other], *OTHERS[other]]:
            for row in (ROWS[0], ROWS[1], ENABLED):
                wished = {one: first, other: second}
                if with_requirements(row | wished).items() >= wished.items():
                    continue
                return True
    return False


class Rendering:
    """Helm with values in a file."""

    def __init__(self, program: Programs, folder: Any) -> None:
        self._helm, self._file = program("helm"), folder / "values.yaml"

    def __call__(self, values: Values) -> subprocess.CompletedProcess[str]:
        self._file.write_text(json.dumps(as_document(values)))
        return subprocess.run(
            [
                *(self._helm, "template", "waddle", CHART, "--namespace", NAMESPACE),
                *("--kube-version", "1.36.0", "--values", self._file),
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )


@pytest.fixture
def render(program, tmp_path):
    return Rendering(program, tmp_path)


def scalars(value: Any) -> set[str]:
    """Returns the parts of a value that a text can contain."""
    if isinstance(value, dict):
        return set().union(*map(scalars, value.values()))
    if isinstance(value, list):
        return set().union(*map(scalars, value))
    return set() if isinstance(value, bool) else {str(value)}


@pytest.mark.slow(40)
@pytest.mark.parametrize(
    "values", [ROWS[0], ROWS[1], ENABLED, ROWS[5]], ids=["defaults", "others", "parts", "mixed"]
)
def test_a_value_changes_what_is_rendered_or_says_that_it_cannot(render, values):
    """Values are changed one after the other, while the others stay."""
    before = render(values)
    assert before.returncode == 0, before.stderr
    wrong = []
    for path in DEFAULTS:
        for value in [DEFAULTS[path], *OTHERS[path]]:
            if value == values[path]:
                continue
            changed = values | {path: value}
            after = render(changed)
            expected = complaints(changed)
            if expected or after.returncode:
                if not any(words in after.stderr for words in expected):
                    wrong.append(f"{path}={value}: {after.stderr or 'nothing was said'}")
            elif (after.stdout != before.stdout) != takes_effect(path, values):
                wrong.append(f"{path}={value}: changed {after.stdout != before.stdout}")
            elif takes_effect(path, values) and value != DEFAULTS[path]:
                missing = {text for text in scalars(value) if text not in after.stdout}
                wrong += [f"{path}={value}: {missing} is nowhere"] if missing else []
    assert wrong == []


@pytest.mark.slow(20)
def test_each_two_values_are_rendered_together_and_name_what_there_is(render):
    for values in ROWS:
        done = render(values)
        assert done.returncode == 0, done.stderr
        objects = [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]
        there = {(one["kind"], one["metadata"]["name"]) for one in objects}
        assert len(there) == len(objects)
        for named in {name for one in objects for name in names_in(one)}:
            assert named in there, f"nothing is named so: {named}"


def odd_values(base: Values) -> Values:
    """The same with texts that YAML reads as something else, and numbers that Go prints shortly.

    The texts are numbers, or end as a key does. Each is there once.
    """
    odd = dict(base)
    for number, (path, default) in enumerate(DEFAULTS.items(), 9001):
        bounds = BOUNDS.get(path, {})
        texts = [f"{number}: a:", f"{number}"]
        if isinstance(default, str) and base[path] and "enum" not in bounds:
            fitting = [text for text in texts if re.search(bounds.get("pattern", ""), text)]
            odd[path] = fitting[number % len(fitting)] if fitting else base[path]
        elif isinstance(default, int) and not isinstance(default, bool):
            odd[path] = max(1_000_000, bounds.get("minimum", 0))
            odd[path] = min(odd[path], bounds.get("maximum", odd[path]))
        elif bounds.get("items") == {"type": "string"} and base[path]:
            odd[path] = [f"{number}"]
    ports = {"ports.admission": 65_535, "ports.health": 65_534, "ports.metrics": 65_533}
    return odd | ports | {"resourceQuota.pods": 3_000_000}


@pytest.mark.parametrize(
    "values",
    [ROWS[1], ENABLED, ENABLED | with_requirements(ENABLED | {"decisions.mode": "exporter"})],
    ids=["others", "parts", "exporter"],
)
def test_texts_stay_texts_and_numbers_are_whole_whatever_they_are(render, values):
    """A prefix `oidc:` was a key, a namespace `123` a number, and a million was written 1e+06."""
    odd = odd_values(values)
    done = render(odd)
    assert done.returncode == 0, done.stderr
    assert re.findall(r".*\de\+\d.*", done.stdout) == []
    objects = [item for item in yaml.load_all(done.stdout, yaml.CSafeLoader) if item]
    texts = "\n".join(texts_in(objects))
    for path, value in odd.items():
        if takes_effect(path, odd) and value != values[path]:
            number = isinstance(value, int)
            missing = {
                text for text in scalars(value) if text not in (done.stdout if number else texts)
            }
            assert missing == set(), path


def texts_in(item: Any) -> Iterator[str]:
    """Yields each text that a document holds."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, dict | list):
        for part in item.values() if isinstance(item, dict) else item:
            yield from texts_in(part)


def test_without_roles_of_ours_none_is_made_and_what_needs_them_is_left_out(render):
    """The Job before an uninstall had a ClusterRole all the same."""
    done = render(with_requirements(ENABLED | {"rbac.create": False}))
    assert done.returncode == 0, done.stderr
    objects = [item for item in yaml.load_all(done.stdout, yaml.CSafeLoader) if item]
    assert [item for item in objects if item["apiVersion"].startswith("rbac.")] == []
    assert [item["metadata"]["name"] for item in objects if item["kind"] == "Job"] == []


def names_in(item: Any) -> set[tuple[str, str]]:
    """The accounts and Services of the chart's own that an object needs."""
    if isinstance(item, list):
        return set().union(*map(names_in, item))
    if not isinstance(item, dict):
        return set()
    found = set().union(*map(names_in, item.values()))
    if account := item.get("serviceAccountName"):
        found.add(("ServiceAccount", account))
    if isinstance(service := item.get("service"), dict):
        found.add(("Service", service["name"]))
    if item.get("kind") == "ServiceAccount" and "metadata" not in item:
        found.add(("ServiceAccount", item["name"]))
    return found
