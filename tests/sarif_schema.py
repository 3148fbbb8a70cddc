"""SARIF 2.1.0 as far as anything here writes it, written down after the standard (OASIS, section 3).

Objects may have no property that the standard does not name; of those that it names, the ones that
nobody here writes are left out.
"""

from __future__ import annotations

from typing import Any, Final

import jsonschema_rs

_TEXT: Final = {"type": "string"}
_LEVEL: Final = {"enum": ["none", "note", "warning", "error"]}
_BAG: Final = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": _TEXT, "uniqueItems": True}},
}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**properties, "properties": _BAG},
        "additionalProperties": False,
    }


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _from(least: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least}


_MULTIFORMAT: Final = _object("text", text=_TEXT, markdown=_TEXT)  # 3.12
_MESSAGE: Final = {  # 3.11
    **_object(text=_TEXT, markdown=_TEXT, id=_TEXT, arguments=_list(_TEXT)),
    "anyOf": [{"required": ["text"]}, {"required": ["id"]}],
}
_RULE: Final = _object(  # 3.49
    "id",
    id=_TEXT,
    name=_TEXT,
    shortDescription=_MULTIFORMAT,
    fullDescription=_MULTIFORMAT,
    help=_MULTIFORMAT,
    helpUri={"type": "string", "format": "uri"},
    defaultConfiguration=_object(enabled={"type": "boolean"}, level=_LEVEL),
)
_REGION: Final = _object(  # 3.30
    startLine=_from(1), startColumn=_from(1), endLine=_from(1), endColumn=_from(1)
)
_LOCATION: Final = _object(  # 3.28
    physicalLocation=_object(
        "artifactLocation",
        artifactLocation=_object(  # 3.4
            uri={"type": "string", "format": "uri-reference"}, uriBaseId=_TEXT, index=_from(-1)
        ),
        region=_REGION,
    ),
    logicalLocations=_list(
        _object(fullyQualifiedName=_TEXT, name=_TEXT, kind=_TEXT), uniqueItems=True
    ),
)
_RESULT: Final = _object(  # 3.27
    "message",
    ruleId=_TEXT,
    ruleIndex=_from(-1),
    level=_LEVEL,
    message=_MESSAGE,
    locations=_list(_LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
)
_INVOCATION: Final = _object(  # 3.20
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    exitCode={"type": "integer"},
    exitCodeDescription=_TEXT,
    toolExecutionNotifications=_list(_object("message", message=_MESSAGE, level=_LEVEL)),
)
_RUN: Final = _object(  # 3.14
    "tool",
    tool=_object(
        "driver",
        driver=_object(  # 3.19
            "name",
            name=_TEXT,
            version=_TEXT,
            informationUri={"type": "string", "format": "uri"},
            rules=_list(_RULE, uniqueItems=True),
        ),
    ),
    invocations=_list(_INVOCATION),
    results=_list(_RESULT),
)
SCHEMA: Final = _object(  # 3.13
    "version",
    "runs",
    version={"enum": ["2.1.0"]},
    runs=_list(_RUN),
    **{"$schema": {"type": "string", "format": "uri"}},
)

_VALIDATOR: Final = jsonschema_rs.validator_for(SCHEMA, validate_formats=True)


def assert_sarif(document: Any) -> None:
    """Fail with what the standard does not allow, or misses."""
    faults = [
        f"{list(one.instance_path)}: {one.message}" for one in _VALIDATOR.iter_errors(document)
    ]
    assert not faults, faults
