"""Requirements of GitHub on SARIF."""

from __future__ import annotations

import re
from typing import Any

from tests.sarif_schema import assert_sarif


def code_scanning(document: dict[str, Any]) -> None:
    """It is SARIF, and what code scanning requires of a file is there."""
    assert_sarif(document)
    assert document["$schema"]
    assert document["version"] == "2.1.0"
    (scan,) = document["runs"]
    driver = scan["tool"]["driver"]
    assert driver["name"]
    for rule in driver["rules"]:
        assert rule["id"]
        for text in ("shortDescription", "fullDescription", "help"):
            assert rule[text]["text"]
    for result in scan["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in {"error", "warning", "note", "none"}
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert re.fullmatch(r"[A-Za-z0-9._~/%:+-]+", physical["artifactLocation"]["uri"])
        region = physical["region"]
        assert all(
            region[name] >= 1 for name in ("startLine", "startColumn", "endLine", "endColumn")
        )
        assert re.fullmatch(
            r"[0-9a-f]+:1", result["partialFingerprints"]["primaryLocationLineHash"]
        )
