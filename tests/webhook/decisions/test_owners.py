"""The owner of a stream is known as long as the disk has it, readable at the moment or not."""

import errno
from pathlib import Path

import pytest

from webhook.decisions.sidecar.disk import OSDisk
from webhook.decisions.sidecar.intake import NAME, load_owners, save_owners
from webhook.decisions.wire.framing import StreamID

STREAM = StreamID("uid-1", "process-1")


class Failing(OSDisk):
    """A disk that cannot be read for a moment."""

    def read(self, path: Path, start: int, count: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")


def test_owners_are_known_again(tmp_path: Path) -> None:
    save_owners(OSDisk(), tmp_path, {STREAM: "somebody"})
    assert load_owners(OSDisk(), tmp_path) == {STREAM: "somebody"}


def test_without_a_file_or_with_one_of_no_sense_there_are_none(tmp_path: Path) -> None:
    assert load_owners(OSDisk(), tmp_path) == {}
    (tmp_path / NAME).write_bytes(b"torn")
    assert load_owners(OSDisk(), tmp_path) == {}


def test_a_disk_that_cannot_be_read_has_not_forgotten_them(tmp_path: Path) -> None:
    """The next comer would own a stream of another's."""
    save_owners(OSDisk(), tmp_path, {STREAM: "somebody"})
    with pytest.raises(OSError, match="Input/output"):
        load_owners(Failing(), tmp_path)
