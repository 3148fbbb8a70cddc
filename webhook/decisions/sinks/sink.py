"""The interface of sinks, their errors, and their types."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from webhook.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.decisions.configuration import Section
    from webhook.log import Logger

TYPES: Final[dict[str, str]] = {
    "stdout": "webhook.decisions.sinks.stdout",
    "file": "webhook.decisions.sinks.file",
    "http": "webhook.decisions.sinks.http",
    "otlp": "webhook.decisions.sinks.otlp",
    "kafka": "webhook.decisions.sinks.kafka",
    "auditDirectory": "webhook.decisions.sinks.audit_directory",
}
"""A sink's type in the configuration, and the module with its ``configure`` function."""

EXTRAS: Final = {"otlp": "grpc", "kafka": "kafka"}
"""The types whose packages are optional, with the extra that installs them."""


ANSWER_SECONDS: Final = 10.0
"""How long a sink on the network may take for an answer, unless configured otherwise."""

ANSWER_SECONDS_MIN: Final = 0.1


class SinkUnavailable(Exception):
    """Nothing can be delivered now; the same batch may be tried again.

    ``retry_after_seconds`` is the pause that the sink requested, 0 for none.
    """

    def __init__(self, message: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class RecordsRefused(Exception):
    """The sink will never take this batch; fewer records of it may pass."""


class Item(NamedTuple):
    """One record as it was recorded, and its lines in the sink's format."""

    record: bytes
    lines: Sequence[bytes]


def lines_of(items: Iterable[Item]) -> list[bytes]:
    """Returns the lines of a batch, for a sink that needs nothing else."""
    return [line for item in items for line in item.lines]


class Sink(Protocol):
    """Takes batches, from one thread."""

    def send(self, items: Sequence[Item]) -> None:
        """Deliver all, or raise :class:`SinkUnavailable` or :class:`RecordsRefused`.

        Delivered means that the sink answers for them: after a crash of this
        process they will not be sent again.
        """

    def close(self) -> None:
        """Closes connections and files."""


class MakeSink(Protocol):
    """Makes a sink; ``origin`` names the configured sink and the queue that it drains."""

    def __call__(self, origin: str, logger: Logger, /) -> Sink:
        """Returns a separate sink for each queue."""


def configure(kind: str, section: Section) -> MakeSink:
    """Reads and checks the settings of a sink of this type; returns a function that makes it.

    Raises :class:`~webhook.decisions.configuration.InvalidConfiguration`.
    """
    try:
        module = import_module(TYPES[kind])
    except ImportError as error:  # missing, or without a library that it needs
        if kind not in EXTRAS:
            raise
        extra = EXTRAS[kind]
        raise section.error(
            "type", f"type {kind} needs an extra: {install_command(extra)} ({error})"
        ) from None
    return cast("Callable[[Section], MakeSink]", module.configure)(section)
