"""The progress of a long run, on a terminal and nowhere else."""

from __future__ import annotations

import io

from webhook.cli.progress import REST_SECONDS, watched


class Terminal(io.StringIO):
    """Takes itself for one."""

    def isatty(self):
        return True


def test_a_terminal_is_informed_how_much_is_done_and_left_as_it_was():
    terminal = Terminal()

    seen = list(watched(["a", "b", "c", "d"], "files", terminal, quiet_seconds=-REST_SECONDS))

    assert seen == ["a", "b", "c", "d"]
    assert f"{'░' * 20} 0/4 files" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_run_that_ends_soon_draws_nothing_and_neither_does_one_without_a_terminal():
    terminal, file = Terminal(), io.StringIO()

    assert list(watched([1, 2], "files", terminal)) == [1, 2]
    assert list(watched([1, 2], "files", file, quiet_seconds=-1)) == [1, 2]

    assert terminal.getvalue() == file.getvalue() == ""


def test_a_run_that_is_interrupted_leaves_no_line():
    terminal = Terminal()
    items = iter(watched([1, 2, 3], "files", terminal, quiet_seconds=-REST_SECONDS))
    next(items)

    del items

    assert terminal.getvalue().endswith("\r\x1b[K")
