"""How a record is written: whole if it fits, and without what is large where it does not."""

from __future__ import annotations

from typing import Any

from webhook.api.encoding import encode


def encode_bounded(record: dict[str, Any], bytes_max: int) -> bytes | None:
    """A record of at most so many bytes, which may be left without its parts; None for none."""
    line = _encode(record)
    if line is None or len(line) > bytes_max:
        line = _shorten(record, bytes_max)
    return line


def _encode(record: dict[str, Any]) -> bytes | None:
    try:
        return encode(record)
    except (TypeError, ValueError, RecursionError):
        return None


def _shorten(record: dict[str, Any], bytes_max: int) -> bytes | None:
    """Leave out what is large, and say so in ``truncated``, until the record fits."""
    truncated = [name for name in ("object", "oldObject") if record.pop(name, None) is not None]
    mutation = record.get("mutation", {})
    truncated += [
        f"mutation.{name}"
        for name in ("patch", "previewPatch")
        if mutation.pop(name, None) is not None
    ]
    record["results"] = [{**result, "details": {}} for result in record.get("results", ())]
    record["truncated"] = [*truncated, "results.details"]
    line = _encode(record)
    if line is not None and len(line) <= bytes_max:
        return line
    for name in ("resourceLabels", "requestUserGroups"):
        record.pop(name, None)
        truncated.append(name)
    record["results"] = [
        {
            **result,
            "message": str(result.get("message", ""))[:256].encode("utf-8", "replace").decode(),
        }
        for result in record["results"][:64]
    ]
    record["truncated"] = [*truncated, "results.details", "results.message", "results"]
    line = _encode(record)
    return line if line is not None and len(line) <= bytes_max else None
