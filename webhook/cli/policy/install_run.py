"""Runs ``waddle policy install`` and ``upgrade``: check, compare, apply."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.cli import exit_codes
from webhook.cli.check import report as check_report
from webhook.cli.check.command import BUDGET_MILLISECONDS, CheckInputs, checked_in_cluster
from webhook.cli.clients import new_client
from webhook.cli.cluster_access import TEMPLATES, ask_cluster, await_served, list_objects
from webhook.cli.sources import CannotTest, read_sources
from webhook.cli.target_run import declared_targets
from webhook.cli.terminal import NoResult, complain, listed, write
from webhook.cluster.errors import ApiError
from webhook.constraint.targets.known import ADMISSION_ALONE
from webhook.constraint.template import KIND
from webhook.policies.installation import (
    PACKAGE_LABEL,
    CannotInstall,
    PackagedPolicies,
    package_id,
    packaged,
    staged,
)
from webhook.policies.recorded_answers import RecordedAnswers
from webhook.policy_kinds.known import constraints_of
from webhook.printable import quantity, reason_of
from webhook.registry.errors import RegistryError
from webhook.registry.package import write_files
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.resource import Resource
    from webhook.cli.registry_access import ArtifactSource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.policies.manifests import Manifest
    from webhook.registry.session import Pulled

SERVED_SECONDS_MAX: Final = 120.0
"""How long a constraint's kind may take to be served once its template is applied."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The cluster, and options of the command line about changing it."""

    kubeconfig: str | None
    context: str | None
    namespace: str
    upgrades: bool = False
    prunes: bool = False
    dry_run: bool = False


def run(image: str, source: ArtifactSource, options: ClusterOptions) -> int:
    """Pulls, checks and applies; returns the exit code."""
    try:
        pulled = source.pull(image)
        manifests = _read(pulled)
        policies = packaged(manifests)
    except (CannotTest, CannotInstall) as error:
        raise NoResult(*error.lines).exiting(exit_codes.NO) from None
    if policies.left_out:
        complain(
            f"left out: {listed(policies.left_out)}: only templates and constraints can be "
            "installed"
        )
    code = _check(manifests, options)
    return code or _apply(pulled, policies, options)


def _read(pulled: Pulled) -> list[Manifest]:
    """Returns an artifact's manifests without its suites' samples; raises :class:`CannotTest`."""
    with tempfile.TemporaryDirectory(prefix="waddle-") as temporary:
        folder = Path(temporary) / "policies"
        try:
            write_files(pulled.files, folder)
        except (OSError, RegistryError) as error:
            raise CannotTest(reason_of(error)) from None
        sources = read_sources([folder], any_value=False, standard_input=False)
        for warning in sources.warnings:
            complain(warning.replace(f"{folder}/", ""))
        if sources.targets:
            declared_targets(sources)
        return sources.manifests


def _check(manifests: list[Manifest], options: ClusterOptions) -> int:
    """Reports existing violations of the policies with their intended actions.

    Returns the exit code.
    """
    inputs = CheckInputs(
        new_client(reviewed_targets=ADMISSION_ALONE),
        manifests,
        BUDGET_MILLISECONDS / 1000,
        RecordedAnswers({}, "no provider {} answers here"),
    )
    checked = checked_in_cluster(inputs, options.kubeconfig, options.context, options.namespace)
    write(check_report.as_table(checked))
    for line in checked.missing:
        complain(line)
    if not checked.ok:
        complain("nothing was installed: the policies are invalid")
        return exit_codes.NO
    return exit_codes.OK


def _apply(pulled: Pulled, policies: PackagedPolicies, options: ClusterOptions) -> int:
    try:
        return ask_cluster(
            options.kubeconfig,
            options.context,
            lambda client: _Installation(client, pulled, policies, options).run(),
        )
    except CannotInstall as error:
        raise NoResult(*error.lines).exiting(exit_codes.NO) from None
    except TimeoutError:
        raise NoResult(
            f"the API server does not serve a constraint's kind {SERVED_SECONDS_MAX:g} s after "
            "its template was applied. Check that Waddle or Gatekeeper runs in the cluster, and "
            "try again"
        ) from None


class _Installation:
    """One package in one cluster."""

    def __init__(
        self,
        client: ClusterClient,
        pulled: Pulled,
        policies: PackagedPolicies,
        options: ClusterOptions,
    ) -> None:
        self._client = client
        self._policies = policies
        self._options = options
        self._name = pulled.reference.name
        self._source = str(pulled.reference)

    async def run(self) -> int:
        """Compares all policies before any change."""
        templates = [
            await self._staged(TEMPLATES, template) for template in self._policies.templates
        ]
        constraints = [
            (kind, await self._staged(kind, constraint))
            for constraint in self._policies.constraints
            for kind in [constraints_of(constraint["kind"])]
        ]
        gone = await self._gone()
        if self._options.upgrades and not await self._is_installed():
            raise CannotInstall(f"{self._name} is not installed here: install it first")
        if self._options.dry_run:
            both = quantity(len(templates) + len(constraints), "policy", "policies")
            write(f"{both} not applied, because of --dry-run")
            return exit_codes.OK
        for template in templates:
            await self._client.apply(TEMPLATES, template)
            write(f"{KIND}/{template['metadata']['name']}: applied")
        for kind, template in constraints:
            await await_served(self._client, kind, within_seconds=SERVED_SECONDS_MAX)
            await self._client.apply(kind, template)
            action = template["spec"].get("enforcementAction") or "deny"
            write(f"{template['kind']}/{template['metadata']['name']}: applied, {action}")
        for kind, name in gone:
            shown = f"{kind.gvk.kind}/{name}"
            if self._options.prunes:
                await self._client.delete(kind, name)
                write(f"{shown}: deleted, since the new version does not have it")
            else:
                write(f"{shown}: kept, though the new version does not have it: --prune deletes it")
        write(f"{self._source} is installed")
        return exit_codes.OK

    async def _staged(self, kind: Resource, document: dict[str, Any]) -> Object:
        current = await self._current(kind, document["metadata"]["name"])
        return staged(document, self._name, self._source, current, upgrades=self._options.upgrades)

    async def _current(self, kind: Resource, name: str) -> Object | None:
        try:
            return await self._client.get(kind, name)
        except ApiError as error:
            if error.is_absent:
                return None
            raise

    async def _is_installed(self) -> bool:
        return bool(await self._of_package(TEMPLATES)) or any(
            [
                await self._of_package(constraints_of(constraint["kind"]))
                for constraint in self._policies.constraints
            ]
        )

    async def _of_package(self, kind: Resource) -> list[Object]:
        label = {"labelSelector": f"{PACKAGE_LABEL}={package_id(self._name)}"}
        return await list_objects(self._client, kind, query=label)

    async def _gone(self) -> list[tuple[Resource, str]]:
        """Returns installed policies absent from the package: constraints before templates."""
        templates = await self._of_package(TEMPLATES)
        kinds = {constraint["kind"] for constraint in self._policies.constraints}
        for template in templates:
            kinds.add(template["spec"]["crd"]["spec"]["names"]["kind"])
        objects = [
            (resource, obj)
            for kind in sorted(kinds)
            for resource in [constraints_of(kind)]
            for obj in await self._of_package(resource)
        ]
        objects += [(TEMPLATES, document) for document in templates]
        return [
            (resource, obj["metadata"]["name"])
            for resource, obj in objects
            if (resource.gvk.kind, obj["metadata"]["name"]) not in self._policies.keys
        ]
