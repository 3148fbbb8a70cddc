"""Changes of files are noticed, told or not."""

import os
import sys
import threading
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from webhook.file_changes import Watched, fingerprint, watch


def test_a_fingerprint_differs_by_name_size_time_and_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a")
    seen = {fingerprint([tmp_path])}
    path.write_text("ab")
    seen.add(fingerprint([tmp_path]))
    os.utime(path, ns=(1, 1))
    seen.add(fingerprint([tmp_path]))
    path.rename(tmp_path / "b.yaml")
    seen.add(fingerprint([tmp_path]))
    path.write_text("other")
    seen.add(fingerprint([tmp_path]))
    assert len(seen) == 5
    assert fingerprint([tmp_path]) == fingerprint([tmp_path])


def test_a_fingerprint_follows_links_and_bears_those_that_lead_nowhere(tmp_path: Path) -> None:
    target = tmp_path / "..one"
    target.mkdir()
    (target / "a").write_text("a")
    (tmp_path / "a").symlink_to("..one/a")
    (tmp_path / "nowhere").symlink_to("missing")
    before = fingerprint([tmp_path])
    (target / "a").write_text("longer")
    assert fingerprint([tmp_path]) != before


class Loads:
    """Counts loads, and wakes who waits for one."""

    def __init__(self, *, content: bool = True) -> None:
        self.number = 0
        self.content = content
        self._changed = threading.Condition()

    def __call__(self) -> bool:
        """Load."""
        with self._changed:
            self.number += 1
            self._changed.notify_all()
        return self.content

    def wait_for(self, number: int) -> None:
        """Wait until there have been so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.number >= number, timeout=PATIENCE_SECONDS)


def test_a_look_reloads_only_what_has_changed_or_failed(tmp_path: Path) -> None:
    loads = Loads()
    subject = Watched([tmp_path], loads)
    subject.look()
    subject.look()
    subject.look(again=True)
    assert loads.number == 1
    (tmp_path / "new").write_text("x")
    subject.look()
    assert loads.number == 2
    loads.content = False
    (tmp_path / "new").write_text("xy")
    subject.look()
    subject.look()
    assert loads.number == 3
    subject.look(again=True)
    assert loads.number == 4


@pytest.mark.parametrize("interval_seconds", [0.1, 3600], ids=["by looking", "by being told"])
def test_changes_are_noticed_until_stopped(tmp_path: Path, interval_seconds: float) -> None:
    loads = Loads()
    stop = threading.Event()
    subject = Watched([tmp_path], loads)
    subject.look()
    (tmp_path / "before-watching").write_text("x")
    thread = threading.Thread(
        target=watch, args=([subject], stop), kwargs={"interval_seconds": interval_seconds}
    )
    thread.start()
    loads.wait_for(2)
    for number in range(3, 6):
        (tmp_path / "file").write_text("x" * number)
        loads.wait_for(number)
    stop.set()
    thread.join(timeout=PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_changes_are_noticed_where_no_system_tells_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain installation has no watchfiles."""
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    loads, stop = Loads(), threading.Event()
    thread = threading.Thread(
        target=watch, args=([Watched([tmp_path], loads)], stop), kwargs={"interval_seconds": 3600}
    )
    thread.start()
    try:
        loads.wait_for(1)
        (tmp_path / "a.yaml").write_text("a")
        loads.wait_for(2)
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
