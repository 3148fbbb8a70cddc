"""The options of generation, from flags and from the webhook's own configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster.kinds import WEBHOOK_CONFIGURATIONS
from webhook.cluster.reflector import ObjectSelection, Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Change
    from webhook.generation.plan import Options


class GenerationOptions:
    """The options that flags set."""

    __slots__ = ("configuration", "exempted", "plan", "synced", "wait_seconds")

    def __init__(
        self,
        plan: Options,
        *,
        wait_seconds: int,
        synced: bool,
        configuration: str,
        exempted: tuple[str, ...],
    ) -> None:
        """``configuration`` is the webhook's own, whose scope policies have if ``synced``."""
        self.plan = plan
        self.wait_seconds = wait_seconds
        self.synced = synced
        self.configuration = configuration
        self.exempted = exempted


class WebhookConfiguration:
    """The webhook's own configuration, followed."""

    def __init__(self, client: ClusterClient, name: str, tell: Callable[[], None]) -> None:
        self._name = name
        self._tell = tell
        self.reflector = Reflector(
            client,
            WEBHOOK_CONFIGURATIONS,
            self,
            selection=ObjectSelection(fields=f"metadata.name={name}"),
        )

    def change(self, changes: Iterable[Change]) -> None:
        """It came, changed or went."""
        del changes  # the store has it
        self._tell()

    def synced(self) -> None:
        """It is known, or known not to be there."""
        self._tell()

    @property
    def document(self) -> Mapping[str, Any] | None:
        """As the API server has it."""
        return self.reflector.store.get("", self._name)
