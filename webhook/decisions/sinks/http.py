"""HTTP: batches as a JSON array, as ndjson or as a message of a chat, with optional gzip."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from webhook.decisions.declaration import setting
from webhook.decisions.sinks.http_client import Endpoint, Poster, read_endpoint
from webhook.decisions.sinks.sink import Item, MakeSink, lines_of
from webhook.printable import printable
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.decisions.configuration import Section

RECORDS_MAX, RESULTS_MAX, CHARACTERS_MAX = 10, 3, 300
"""The most records of a message, results of a record, and characters of a text: 13,000 characters
in total; Teams accepts 28 KiB."""


def message_of(lines: Sequence[bytes], shape: str) -> bytes:
    """Returns one message about all of these records; empty without a decision among them."""
    records = [record for line in lines if (record := json.loads(line)).get("verdict")]
    if not records:
        return b""
    texts = [_chat_text(record) for record in records[:RECORDS_MAX]]
    if len(records) > RECORDS_MAX:
        texts.append(f"and {len(records) - RECORDS_MAX} more")
    return json.dumps(SHAPES[shape](texts)).encode()


def _chat_text(record: Mapping[str, Any]) -> str:
    """Describes a decision: verdict, object and user, and a line for each violation."""
    namespace, name = record.get("resourceNamespace", ""), record.get("resourceName", "")
    place = f"{namespace}/{name or '(unnamed)'}" if namespace else name or "(unnamed)"
    words = [
        str(record["verdict"]),
        str(record.get("operation") or "audit"),
        f"{record.get('resourceKind', '')} {place}",
    ]
    if user := record.get("requestUsername"):
        words += ["by", str(user)]
    lines = [" ".join(words)]
    results = record.get("results", ())
    for result in results[:RESULTS_MAX]:
        constraint = result.get("constraint", {})
        policy = f"{constraint.get('kind', '')}/{constraint.get('name', '')}"
        lines.append(f"{policy}: {result.get('message', '')}")
    if len(results) > RESULTS_MAX:
        lines.append(f"and {len(results) - RESULTS_MAX} more")
    lines += map(str, record.get("errors", ()))
    return "\n".join(_cut(line) for line in lines[: RESULTS_MAX + 2])


def _cut(text: str) -> str:
    line = printable(text).replace("\n", " ")
    return line if len(line) <= CHARACTERS_MAX else f"{line[: CHARACTERS_MAX - 1]}…"


def _slack(texts: Sequence[str]) -> object:
    """Makes Slack's message; its three special characters are escaped.

    So a policy's or user's text can neither mention a user nor add a link.
    """
    text = "\n\n".join(texts)
    for sign, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, written)
    return {"text": text}


def _teams(texts: Sequence[str]) -> object:
    """Makes an Adaptive Card for a workflow; plain text runs have no markup."""
    body = [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text}]} for text in texts
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


SHAPES: Final[Mapping[str, Callable[[Sequence[str]], object]]] = {"slack": _slack, "teams": _teams}
"""The writers of messages, by value of a sink's ``encoding``."""


GZIP_LEVEL: Final = 1
"""Most of the gain at a fraction of the CPU: records repeat their keys."""


@dataclass(frozen=True, slots=True)
class HTTPSettings:
    """The address and format of posts."""

    endpoint: Endpoint
    encoding: str = setting("json", words=("json", "ndjson", *SHAPES))
    gzip: bool = setting(default=False)


class HTTPSink:
    """Posts each batch; any 2xx answer means that all of it was taken."""

    def __init__(self, settings: HTTPSettings) -> None:
        self._poster = Poster(settings.endpoint)
        self._encoding = settings.encoding
        self._compress = settings.gzip

    def send(self, items: Sequence[Item]) -> None:
        """Posts one batch."""
        lines = lines_of(items)
        headers = {"Content-Type": "application/json"}
        if self._encoding in SHAPES:
            body = message_of(lines, self._encoding)
            if not body:
                return
        elif self._encoding == "json":
            body = b"[" + b",".join(lines) + b"]"
        else:
            body = b"\n".join(lines) + b"\n"
            headers = {"Content-Type": "application/x-ndjson"}
        if self._compress:
            body = gzip.compress(body, GZIP_LEVEL)
            headers["Content-Encoding"] = "gzip"
        self._poster.post(body, headers)

    def close(self) -> None:
        """Closes the connection."""
        self._poster.close()


def configure(section: Section) -> MakeSink:
    """Settings of the endpoint, ``encoding`` (json, ndjson, slack, teams) and ``gzip``."""
    settings = section.read(HTTPSettings, endpoint=read_endpoint(section))
    section.finish()
    return lambda _origin, _logger: HTTPSink(settings)
