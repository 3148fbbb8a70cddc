"""Watches the VerificationPolicies of a cluster; keeps the newest usable version of each."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupVersionKind, name_of
from webhook.api.resource import Resource
from webhook.cluster.reflector import Reflector
from webhook.images.policy import (
    GROUP_VERSION,
    KIND,
    InvalidVerificationPolicy,
    VerificationPolicy,
    read_policy,
    unusable_policy,
)
from webhook.images.policy_files import check_conditions, secrets_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Change
    from webhook.log import Logger

VERIFICATION_POLICIES: Final = Resource(
    GroupVersionKind(*GROUP_VERSION, KIND), "verificationpolicies", namespaced=False
)

SECRETS_SECONDS: Final = 10.0
"""The interval between two reads of mounted Secrets. Kubelets update them within a minute."""


class FollowedPolicies:
    """Follows the policies and passes those in force to ``take``, on the loop of the caller."""

    def __init__(
        self,
        client: ClusterClient,
        secrets: Path | None,
        take: Callable[[tuple[VerificationPolicy, ...], int], None],
        log: Logger,
    ) -> None:
        """``take`` receives the policies and the number of unusable newest versions."""
        self._secrets = secrets
        self._take = take
        self._log = log
        self._good: dict[str, VerificationPolicy] = {}
        self._logged: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._reflector = Reflector(client, VERIFICATION_POLICIES, self)
        self.is_known = False
        """Whether the policies have been passed to ``take`` once."""

    def change(self, changes: Iterable[Change]) -> None:
        """Notes that the store has changed."""
        del changes
        self._changed.set()

    def synced(self) -> None:
        """Notes that the first list is complete."""
        self._changed.set()

    async def run(self) -> None:
        """Follows the policies until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reflector.run(), name="policies")
            await self._reflector.wait_synced()
            while True:
                self._changed.clear()
                documents = sorted(self._reflector.store, key=name_of)
                policies, faults = await asyncio.to_thread(self._read, documents)
                self._take(policies, faults)
                self.is_known = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SECRETS_SECONDS):
                        await self._changed.wait()

    def _read(self, documents: list[dict[str, Any]]) -> tuple[tuple[VerificationPolicy, ...], int]:
        """Returns the policies in force, and the number of unusable ones.

        An unusable policy is replaced by its last usable version, or by a refusal of its images.
        """
        policies, good, faults = [], {}, {}
        for document in documents:
            name = name_of(document)
            try:
                policy = read_policy(document, _no_files, secrets_in(self._secrets))
                check_conditions(policy)
            except InvalidVerificationPolicy as error:
                faults[name] = str(error)
                if self._logged.get(name) != faults[name]:
                    self._log.error("a policy cannot be used", policy=name, error=faults[name])
                policy = self._good.get(name) or unusable_policy(document, faults[name])
            if not policy.fault:
                good[name] = policy
            policies.append(policy)
        self._good, self._logged = good, faults
        return tuple(policies), len(faults)


def _no_files(name: str) -> bytes:
    raise OSError(f"{name}: a policy of a cluster names Secrets, not files")
