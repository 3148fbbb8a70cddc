"""ValidatingAdmissionPolicies made from constraints in CEL: compared with the cluster, and written.

For example, a template whose ``generateVAP`` is true gets a policy, and each of its constraints a
binding. One that somebody has changed is written again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        """``configuration`` names the webhook's own; policies take over its scope if ``synced``."""
        self.plan = plan
        self.wait_seconds = wait_seconds
        self.synced = synced
        self.configuration = configuration
        self.exempted = exempted
