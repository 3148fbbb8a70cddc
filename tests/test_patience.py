"""Waits of tests: a wait that fails shows why."""

import pytest

from tests.patience import running, until


class Program:
    """A program with a log of one line."""

    def last_lines(self) -> str:
        """Returns what the log says."""
        return "waddle-0 runs; its log ends with: no way to the API server"


def test_a_wait_that_fails_ends_with_the_logs_of_the_programs_that_run():
    program = Program()
    running.add(program)
    with pytest.raises(
        AssertionError, match=r"^never came: a policy\n(.*\n)*waddle-0 runs;.* API server"
    ):
        until(lambda: False, "a policy", seconds=0)
    del program
    with pytest.raises(AssertionError) as failed:
        until(lambda: False, lambda: "no policy", seconds=0)
    assert "waddle-0" not in str(failed.value)
