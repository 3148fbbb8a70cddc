"""The only reader of policies in files: all deciding objects as one set.

Templates, constraints and data are loaded into a client. Mutators, ExpansionTemplates and excluded
namespaces of Configs are kept beside it. Every command that decides by files uses this reader.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.policies.directory import Announce, PolicyDirectory, PolicyReport
from webhook.policies.extensions import Extensions
from webhook.policy_kinds.known import part_of
from webhook.review.policy_set import PolicySet, exclusions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from webhook.constraint.client import Client
    from webhook.policies.manifests import Manifest
    from webhook.policy_kinds.kind import Part, PolicyPart


class PolicyFiles:
    """Keeps a client in step with the policies of some directories or files. Used by one task."""

    def __init__(
        self,
        client: Client,
        paths: Sequence[Path],
        given: Sequence[Manifest] = (),
        *,
        foreign: Mapping[Part, PolicyPart] | None = None,
        announce: Announce | None = None,
        external_data: bool = True,
    ) -> None:
        """``given`` are objects beside the files' objects; ``announce`` is passed to the directory.

        ``foreign`` are the parts of API server and Kyverno policies that review, too. Without
        ``external_data`` no mutator may ask a provider.
        """
        self._foreign = foreign or {}
        self._client = client
        self._directory = PolicyDirectory(client, paths, given, announce=announce)
        self._extensions = Extensions(self._foreign, external_data=external_data)

    def load(self) -> tuple[PolicySet, PolicyReport]:
        """Reads the files; returns the policies, and a report with all faults."""
        report = self._directory.load()
        extensions = list(report.configuration)
        extensions += [item for item in report.read if part_of(item.gvk) in self._foreign]
        broken = self._extensions.load(extensions)
        exclusions = exclusions_of(item.document for item in report.configuration)
        policies = self._extensions.policy_set(self._client.snapshot, exclusions)
        return policies, replace(report, faults=(*report.faults, *broken))
