"""Tables and the line of progress: what a terminal shows, and that nothing can command it."""

import asyncio
import io
import re
from types import SimpleNamespace
from typing import Any

import pytest

from tests.programs import ROOT
from webhook.api.gvk import GroupVersionKind
from webhook.cli.audit.progress import Progress
from webhook.cli.table import framed, table


def test_columns_are_as_wide_as_what_is_shown():
    """A control character is shown as four; numbers stand to the right."""
    rows = [("NAME", "TOTAL"), ("a\x1b", "7"), ("longer", "1234567")]
    assert table(rows, right={1}) == [
        "NAME      TOTAL",
        "a\\x1b         7",
        "longer  1234567",
    ]
    assert table([]) == []


def test_a_frame_has_its_heading_in_the_middle():
    assert framed(["x", "data.p"], [["true", "1"]]) == [
        "┌──────┬────────┐",
        "│  x   │ data.p │",
        "├──────┼────────┤",
        "│ true │ 1      │",
        "└──────┴────────┘",
    ]


def seen(kind: str, violations: int) -> Any:
    """An object that an audit reviewed, as far as progress looks at it."""
    return SimpleNamespace(
        identity=SimpleNamespace(gvk=GroupVersionKind("", "v1", kind)),
        responses=SimpleNamespace(results=[None] * violations),
    )


def test_progress_is_one_line_that_is_gone_at_the_end():
    terminal = io.StringIO()
    start: Any = SimpleNamespace(kinds=["Pod", "Service"])
    end: Any = SimpleNamespace(complete=["Pod"], failed={"Service": "gone"})

    async def audit() -> None:
        with Progress(terminal) as progress:
            await progress.start(start)
            await progress.audited(seen("Pod", 2))
            await progress.audited(seen("Service", 1))
            await progress.end(end)

    asyncio.run(audit())
    shown = terminal.getvalue()
    assert "\n" not in shown
    drawn = shown.split("\r\x1b[K")
    assert [line.strip("█░ ") for line in drawn] == [
        "",
        "0/0 kinds  0 objects  0 violations  reading policies",
        "0/2 kinds  0 objects  0 violations  reading policies",
        "0/2 kinds  1 objects  2 violations  Pod",
        "1/2 kinds  2 objects  3 violations  Service",
        "2/2 kinds  2 objects  3 violations  Service",
        "",
    ]
    assert drawn[4].startswith("█" * 10 + "░" * 10)


def test_a_terminal_of_another_alphabet_is_left_empty():
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with Progress(terminal):
        pass
    terminal.flush()
    assert re.fullmatch(rb"(\r\x1b\[K)+", terminal.buffer.getvalue())


@pytest.mark.parametrize("file", ["run.txt", "dev.txt"])
def test_nothing_that_is_installed_brings_rich(file):
    """Structlog would import it at each start of each process, where a second matters."""
    names = re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / file).read_text(), re.MULTILINE)
    assert "structlog" in names
    assert "rich" not in names
