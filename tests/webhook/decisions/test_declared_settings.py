"""Settings of the decision log: declared once, at the field, and read from there."""

from dataclasses import MISSING, fields
from typing import Any

import pytest

from tests.programs import ROOT
from webhook.decisions.configuration import ConfigurationError, Section
from webhook.decisions.declaration import SETTING
from webhook.decisions.exporter.settings import ExporterSettings
from webhook.decisions.rules import RecordRule, RecordSelection
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sidecar.settings import SidecarSettings, SinkSettings
from webhook.decisions.sinks.file import FileSettings
from webhook.decisions.sinks.http_client import Endpoint

SHAPES = (
    ExporterSettings,
    SidecarSettings,
    SinkSettings,
    LogLimits,
    DrainSettings,
    FileSettings,
    Endpoint,
    RecordRule,
    RecordSelection,
)


def test_every_setting_is_in_the_documentation():
    text = (ROOT / "docs" / "decisions.md").read_text()
    keys = {
        declared.key_of(item.name)[-1]
        for shape in SHAPES
        for item in fields(shape)
        if (declared := item.metadata.get(SETTING)) is not None
    }
    assert len(keys) > 20
    assert {key for key in keys if f"{key}" not in text} == set()


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
    ("shape", "values", "told"),
    [
        (LogLimits, {"segmentBytes": 1}, "f.segmentBytes: expected a whole number, 65536 or more"),
        (DrainSettings, {"maxRecords": 0}, "f.maxRecords: expected a whole number, 1 or more"),
        (RecordRule, {"keep": 1.5}, "f.keep: expected a number from 0 to 1"),
        (RecordRule, {"keep": -1}, "f.keep: expected a number, 0 or more"),
        (
            RecordSelection,
            {"actions": ["slap"]},
            "f.actions: unknown slap, known are deny, warn, dryrun",
        ),
        (Endpoint, {}, "f.url: expected a string"),
        (Endpoint, {"url": "$(NOT_THERE)"}, "f.url: the environment has no NOT_THERE"),
        (SinkSettings, {"format": "prose"}, "f.format: expected one of decision, gatekeeper"),
    ],
)
def test_a_value_out_of_its_bounds_is_named_with_its_place(
    shape: type[Any], values: dict[str, Any], told: str
) -> None:
    given = {"name": "x"} if shape is DrainSettings else {}
    with pytest.raises(ConfigurationError) as refused:
        Section(values, "f").read(shape, **given)
    assert str(refused.value) == told


def test_a_misspelt_key_is_refused_in_whatever_mapping_it_is():
    section = Section({"queue": {"maxRecord": 1}, "listen": [{"url": "x", "tsl": {}}]}, "f")
    section.read(ExporterSettings, address=None)
    with pytest.raises(ConfigurationError, match="f: unknown key listen"):
        section.finish()
    for part in section.sections("listen"):
        part.text("url")
    with pytest.raises(ConfigurationError, match=r"f.queue: unknown key maxRecord"):
        section.finish()
