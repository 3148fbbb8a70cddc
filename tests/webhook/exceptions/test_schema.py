"""The CRDs of exceptions say what files are checked by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.exceptions import schema

CRDS = Path(__file__).parents[3] / "manifests" / "crds"


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_descriptions(inner)
            for name, inner in value.items()
            if name != "description" or not isinstance(inner, str)
        }
    return [without_descriptions(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("file", "of_spec"),
    [("policyexceptions", schema.NAMESPACED), ("clusterpolicyexceptions", schema.CLUSTER)],
)
def test_a_crd_s_spec_is_the_schema(file: str, of_spec: dict[str, Any]) -> None:
    crd = yaml.safe_load((CRDS / f"{file}.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    found = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert without_descriptions(found) == without_descriptions(of_spec)
