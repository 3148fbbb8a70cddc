"""Settings of the decision log: declared once, at the field, and read from there."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import pytest

from tests.programs import ROOT
from webhook import decisions
from webhook.decisions.configuration import InvalidConfiguration, Section, parse
from webhook.decisions.declaration import SETTING, setting
from webhook.decisions.exporter.settings import ExporterSettings
from webhook.decisions.rules import RecordRule, RecordSelection
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sidecar.settings import SinkSettings
from webhook.decisions.sinks.http_client import Endpoint
from webhook.values import dataclass


def shapes() -> Iterator[type[Any]]:
    """Every class of the decision log that declares a setting."""
    for module in pkgutil.walk_packages(decisions.__path__, f"{decisions.__name__}."):
        for name, found in vars(importlib.import_module(module.name)).items():
            if (
                isinstance(found, type)
                and (found.__module__, found.__name__) == (module.name, name)
                and is_dataclass(found)
                and any(SETTING in item.metadata for item in fields(found))
            ):
                yield found


SHAPES = tuple(shapes())


def test_every_setting_is_in_the_documentation():
    text = (ROOT / "docs" / "decisions.md").read_text()
    keys = {
        declared.key_of(item.name)[-1]
        for shape in SHAPES
        for item in fields(shape)
        if (declared := item.metadata.get(SETTING)) is not None
    }
    assert len(keys) > 20
    assert {ExporterSettings, RecordRule, LogLimits, Endpoint} < set(SHAPES)
    assert {key for key in keys if f"{key}" not in text} == set()


def test_no_default_stands_where_a_file_is_read():
    """But at its field: what takes one of these is a default or a bound in the code of a reader."""
    code = ROOT / "webhook" / "decisions"
    found = [
        (path.name, node.func.attr, ast.literal_eval(node.args[0]))
        for path in code.rglob("*.py")
        if path.name != "configuration.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"integer", "number", "boolean", "choice"}
    ]
    assert found == [("settings.py", "choice", "type")]  # one of the sinks, and none is the default


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_file_does_not_say_is_as_it_is_declared(shape: type[Any]) -> None:
    """Read from an empty file, with what no file can leave out, it is what it is without one."""
    given = {
        item.name: f"the {item.name}"
        for item in fields(shape)
        if item.default is MISSING and item.default_factory is MISSING
    }
    assert Section({}, "empty").read(shape, **given) == shape(**given)


@pytest.mark.parametrize(
    ("shape", "values", "message"),
    [
        (LogLimits, {"segmentBytes": 1}, "f.segmentBytes: expected a whole number, 65536 or more"),
        (DrainSettings, {"maxRecords": 0}, "f.maxRecords: expected a whole number, 1 or more"),
        (RecordRule, {"keep": 1.5}, "f.keep: expected a number from 0 to 1"),
        (RecordRule, {"keep": -1}, "f.keep: expected a number, 0 or more"),
        (
            RecordSelection,
            {"actions": ["slap"]},
            "f.actions: unknown slap; known are deny, warn, dryrun",
        ),
        (Endpoint, {}, "f.url: expected a string"),
        (Endpoint, {"url": "$(NOT_THERE)"}, "f.url: the environment variable NOT_THERE is not set"),
        (SinkSettings, {"format": "prose"}, "f.format: expected one of decision, gatekeeper"),
    ],
)
def test_a_value_out_of_its_bounds_is_named_with_its_place(
    shape: type[Any], values: dict[str, Any], message: str
) -> None:
    given = {"name": "x"} if shape is DrainSettings else {}
    with pytest.raises(InvalidConfiguration) as refused:
        Section(values, "f").read(shape, **given)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("shape", "text", "message"),
    [
        (RecordRule, "keep: .nan", "f: line 1: .nan is not a number of JSON"),
        (RecordRule, "keep: .inf", "f: line 1: .inf is not a number of JSON"),
        (RecordRule, "keep: -.inf", "f: line 1: -.inf is not a number of JSON"),
        (
            DrainSettings,
            "backoffInitialSeconds: .nan",
            "f: line 1: .nan is not a number of JSON",
        ),
        (
            DrainSettings,
            f"backoffMaxSeconds: 1{'0' * 400}",
            "f: line 1: a number of 401 digits is beyond what Kubernetes reads",
        ),
    ],
)
def test_what_is_no_number_passes_no_bound(shape: type[Any], text: str, message: str) -> None:
    """A share of `.nan` lay between 0 and 1, and every record of its rule was dropped as sampled."""
    given = {"name": "x"} if shape is DrainSettings else {}
    with pytest.raises(InvalidConfiguration) as refused:
        parse(text.encode(), "f").read(shape, **given)
    assert str(refused.value) == message


@dataclass(frozen=True, slots=True)
class Bounded:
    """Forms of a declaration that no setting of ours has yet."""

    count: int = setting(3, least=2, most=5_000_000)
    names: tuple[str, ...] = setting(("a", "b"))
    verdicts: frozenset[str] = setting(frozenset({"deny"}), words=("allow", "deny"))
    labels: dict[str, str] = setting({"team": "a"})


@pytest.mark.parametrize(
    ("count", "message"),
    [(1, ", 2 or more"), (2.0, ", 2 or more"), (5_000_001, " from 2 to 5000000")],
)
def test_a_whole_number_has_both_its_bounds(count: float, message: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        Section({"count": count}, "f").read(Bounded)
    assert str(refused.value) == f"f.count: expected a whole number{message}"


def test_a_list_or_a_mapping_that_a_file_does_not_give_is_its_default() -> None:
    read = Section({}, "f").read(Bounded)
    assert read == Bounded()
    assert read.names == ("a", "b")
    assert read.verdicts == frozenset({"deny"})
    assert read.labels == {"team": "a"}
    assert read.labels is not Bounded().labels
    given = {"names": [], "verdicts": ["allow"], "labels": {}}
    assert Section(given, "f").read(Bounded) == Bounded(3, (), frozenset({"allow"}), {})


def test_a_misspelt_key_is_refused_in_whatever_mapping_it_is():
    section = Section({"queue": {"maxRecord": 1}, "listen": [{"url": "x", "tsl": {}}]}, "f")
    section.read(ExporterSettings, address=None)
    with pytest.raises(InvalidConfiguration, match="f: unknown key listen"):
        section.finish()
    for part in section.sections("listen"):
        part.text("url")
    with pytest.raises(InvalidConfiguration, match=r"f.queue: unknown key maxRecord"):
        section.finish()
