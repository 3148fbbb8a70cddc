"""``waddle check``: validates policies, and shows the effect of their changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.admission_policies.kinds import POLICY, InvalidAdmissionPolicy
from webhook.api.gvk import GroupVersionKind, name_of
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.cli import exit_codes
from webhook.cli.cluster_access import NAMESPACE, ask_cluster, cluster_options
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import FILENAMES, PROVIDERS, STANDARD_INPUT
from webhook.cli.registry_access import image_option
from webhook.cli.terminal import complain, write
from webhook.constraint.wildcard import WILDCARD
from webhook.values import dataclass
from webhook.webhook_rules.kinds import targets_of_rules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from webhook.cli.check.run import BeforeAndAfter, PolicyCheck
    from webhook.cli.sources import Sources
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.client import Client
    from webhook.constraint.review import Document
    from webhook.policies.manifests import Manifest
    from webhook.policies.recorded_answers import RecordedAnswers

BUDGET_MILLISECONDS: Final = 100

_HELP = """Check templates, constraints and mutators before they are applied.

Each is compiled and checked as admission does it, and tried on sample objects within a
budget. Mutators and ExpansionTemplates are checked, too, with whom they conflict. Other
manifests in the files are objects: they are mutated first, with the difference shown, and the
policies are asked about what would be stored. ValidatingAdmissionPolicies are checked
with their bindings and parameters.

\b
  waddle check -f policies/
  waddle check -f policy.yaml --cluster                # what in the cluster would violate it
  waddle check -f policy.yaml --decisions queue/       # which admissions it would have changed
  waddle check -f policy.yaml --vap template           # whether generated policies say the same
  waddle check -f policy.yaml --reads                  # what each policy depends on
"""


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """The inputs of a check, and the means that it may use.

    ``base`` is the client that gets the policies in force. ``documents`` are no objects of a
    cluster. ``decisions`` names recorded decisions to replay, ``vap`` the mode of generated
    policies to compare with.
    """

    base: Client
    manifests: Sequence[Manifest]
    budget_seconds: float
    answers: RecordedAnswers
    documents: Sequence[Document] = ()
    decisions: str | None = None
    vap: str | None = None


@click.command("check", help=_HELP + exit_codes.paragraph("check"))
@image_option("filenames", exit_codes.UNKNOWN)
@FILENAMES
@click.option(
    "--cluster", "on_cluster", is_flag=True, help="Show the effect on what is in a cluster."
)
@cluster_options
@click.option(
    "--decisions",
    metavar="SOURCE",
    default=None,
    help="Show the effect on recorded decisions: a file, a sidecar's queue, or -.",
)
@click.option(
    "--vap",
    type=click.Choice(["template", "constraint"]),
    default=None,
    help=(
        "Compare the webhook with the ValidatingAdmissionPolicies that this "
        "--vap-generation-mode generates: on samples, manifests and recorded decisions."
    ),
)
@click.option(
    "--evaluation-budget-ms",
    "budget_milliseconds",
    metavar="MS",
    default=BUDGET_MILLISECONDS,
    show_default=True,
    type=click.IntRange(min=1),
    help="The time limit of one evaluation of one constraint.",
)
@click.option(
    "--reads", is_flag=True, help="Show what each policy reads of the review, parameters and data."
)
@PROVIDERS
@output_option(*words.SHORT)
def command(  # noqa: PLR0913  # one for each option
    filenames: tuple[str, ...],
    *,
    on_cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    decisions: str | None,
    vap: str | None,
    budget_milliseconds: int,
    reads: bool,
    answers: RecordedAnswers,
    output: str,
) -> int:
    """Check and report."""
    _once([decisions, kubeconfig, *filenames])
    piped_apart = decisions == "-" or kubeconfig == STANDARD_INPUT
    # Imported here: --help, completion and a mistyped option do not need it.
    from webhook.cli.sources import CannotTest, read_sources  # noqa: PLC0415

    sources = read_sources(
        [Path(name) for name in filenames],
        any_value=False,
        standard_input=not piped_apart,
        keep_going=True,  # all faults are reported together
        kept=True,
    )
    for line in (*sources.faults, *sources.warnings):
        complain(line)
    # Missing files are reported without the engine.
    from webhook.cli.check.mutators import faults_of_conditions  # noqa: PLC0415  # likewise
    from webhook.policies.validation import is_policy  # noqa: PLC0415
    from webhook.policy_kinds.known import is_extension  # noqa: PLC0415

    manifests = sources.manifests
    if not any(is_policy(item.document) or is_extension(item.document) for item in manifests):
        _report_nothing(manifests)
        return exit_codes.UNKNOWN
    try:
        base = _client(sources)
    except CannotTest as error:
        raise error.exiting(exit_codes.NO) from None
    documents = [document.document for document in sources.documents]
    seconds = budget_milliseconds / 1000
    inputs = CheckInputs(base, manifests, seconds, answers, documents, decisions, vap)
    if on_cluster:
        checked = checked_in_cluster(inputs, kubeconfig, context, namespace)
    else:
        checked = _checked_alone(inputs)
    checked.problems += faults_of_conditions(checked.mutation.extensions, manifests)
    is_whole = not (sources.faults or checked.unread)
    return _report(checked, output, reads=reads) or (
        exit_codes.OK if is_whole else exit_codes.UNKNOWN
    )


def _report_nothing(manifests: Sequence[Manifest]) -> None:
    """Reports files without policies to check, and names those that are not checked."""
    from webhook.kyverno.kinds import why_not_run  # noqa: PLC0415  # see command

    for item in manifests:
        if why := why_not_run(item.document):
            complain(f"{item.file}:{item.line}: {item.title}: not evaluated: {why}")
    complain(
        "the files have nothing to check: no template, constraint, mutator, "
        "ExpansionTemplate, ValidatingAdmissionPolicy or ValidatingPolicy of Kyverno. "
        "`waddle test` reviews objects"
    )


def _client(sources: Sources) -> Client:
    """Returns the client that compiles the policies, with the targets that the files declare."""
    from webhook.cli.clients import new_client  # noqa: PLC0415  # see command
    from webhook.cli.target_run import declared_targets  # noqa: PLC0415  # see command
    from webhook.constraint.targets.known import ADMISSION_ALONE  # noqa: PLC0415  # see command

    declared = tuple(declared_targets(sources).values())
    return new_client(targets=declared, reviewed_targets=ADMISSION_ALONE)


def _once(given: Sequence[str | None]) -> None:
    """Raises if standard input is named more than once."""
    if given.count("-") + given.count(STANDARD_INPUT) > 1:
        text = "standard input can be only one of policies, decisions and the kubeconfig"
        raise click.UsageError(text)


def _report(checked: PolicyCheck, output: str, *, reads: bool) -> int:
    """Reports the results, and on request the inputs of policies; returns the exit code."""
    from webhook.cli.check import report as check_report  # noqa: PLC0415  # see command
    from webhook.cli.check.run import derive_reads  # noqa: PLC0415  # see command
    from webhook.policies.advice import advice_on_messages  # noqa: PLC0415  # see command

    if checked.after is not None:
        checked.problems += advice_on_messages(checked.after.snapshot.entries)
    if reads:
        checked.reads = derive_reads(checked)

    write(check_report.as_json(checked) if output == "json" else check_report.as_table(checked))
    for line in checked.missing:
        complain(line)
    return exit_codes.OK if checked.ok else exit_codes.NO


def _checked_alone(inputs: CheckInputs) -> PolicyCheck:
    """Checks without earlier policies in force."""
    from webhook.cli.check import run as check_run  # noqa: PLC0415  # see command
    from webhook.policies.request_coverage import coverage_problems  # noqa: PLC0415  # see command

    checked, manifests = check_run.PolicyCheck(), inputs.manifests
    policies = check_run.prepare(manifests, inputs.base, inputs.budget_seconds, checked)
    checked.problems += coverage_problems(manifests, None, NAMESPACE)
    check_run.check_providers(policies, manifests, inputs.answers.names, checked)
    checked.manifests = check_run.effect_on_manifests(
        policies, manifests, checked, inputs.answers, inputs.documents
    )
    check_run.check_foreign(policies, checked)
    _check_records(policies, inputs, checked)
    return checked


def _check_records(policies: BeforeAndAfter, inputs: CheckInputs, checked: PolicyCheck) -> None:
    """Replays recorded decisions, and compares generated policies."""
    from webhook.cli.check import run as check_run  # noqa: PLC0415  # see command

    decisions, vap = inputs.decisions, inputs.vap
    records = None if decisions is None else check_run.RecordedDecisions(decisions)
    if records is not None and vap is not None:
        records.keep()
    if records is not None:
        check_run.effect_on_decisions(policies, records, checked, inputs.answers)
    if vap is not None:
        check_run.compare_generated(policies, inputs.manifests, records, vap, checked)


def checked_in_cluster(
    inputs: CheckInputs, kubeconfig: str | None, context: str | None, namespace: str
) -> PolicyCheck:
    """Checks on top of a cluster's policies; raises :class:`NoResult` if it does not answer.

    ``namespace`` is Waddle's.
    """
    from webhook.cli import cluster_policies  # noqa: PLC0415  # it brings aiohttp
    from webhook.cli.check import run as check_run  # noqa: PLC0415
    from webhook.cli.webhook_configurations import read_webhook_configurations  # noqa: PLC0415
    from webhook.cluster.page_size import LIST_OBJECTS  # noqa: PLC0415
    from webhook.policies.request_coverage import coverage_problems  # noqa: PLC0415

    async def run(client: ClusterClient) -> PolicyCheck:
        checked, base = check_run.PolicyCheck(), inputs.base
        # Existing faults in the cluster are not part of the check.
        await cluster_policies.read_constraints(client, base, namespace)
        extensions, unreadable = await cluster_policies.read_extensions(client, namespace)
        configs, more = await cluster_policies.read_configs(client, namespace)
        checked.missing += unreadable + more
        policies = check_run.prepare(
            inputs.manifests, base, inputs.budget_seconds, checked, extensions, configs
        )
        checked.missing += [text async for text in _type_warnings(client, inputs.manifests)]
        standing = await read_webhook_configurations(client, namespace)
        checked.problems += coverage_problems(inputs.manifests, standing, namespace)
        for kind in check_run.kinds_of_parameters(policies):
            for parameter in await cluster_policies.list_kind(client, kind):
                policies.after.add_data(parameter)
        checked.manifests = check_run.effect_on_manifests(
            policies, (), checked, inputs.answers, inputs.documents
        )
        check_run.check_foreign(policies, checked)
        _check_records(policies, inputs, checked)
        checked.cluster = await check_run.effect_on_cluster(
            client, policies, checked, LIST_OBJECTS, inputs.answers
        )
        return checked

    return ask_cluster(kubeconfig, context, run)


async def _type_warnings(
    client: ClusterClient, manifests: Iterable[Manifest]
) -> AsyncIterator[str]:
    """Warns of policies whose expressions do not fit the kinds that they name, by their schemas.

    The API server's own warnings, if a policy has them in its status, are reported anyway.
    """
    from webhook.admission_policies import advice  # noqa: PLC0415  # as the others of clusters
    from webhook.controllers.apply.openapi import KindTypes  # noqa: PLC0415
    from webhook.generation.type_warnings import policy_type_warnings  # noqa: PLC0415
    from webhook.policy_kinds.parts import read_admission_policy  # noqa: PLC0415

    types = KindTypes(client)
    for item in manifests:
        if item.gvk.kind != POLICY or advice.type_warnings(item.document):
            continue
        try:
            read_admission_policy(item.document)
        except InvalidAdmissionPolicy:
            continue  # reported with its fault
        named = named_kinds(item.document)
        known = await types.look({gvk.group_kind for gvk in named})
        described = {gvk: of for gvk, of in known.items() if gvk in named}
        warnings = policy_type_warnings(item.document, described)
        status = {"status": {"typeChecking": {"expressionWarnings": warnings}}}
        for text in advice.type_warnings(status):
            yield f"{item.place}: {POLICY}/{name_of(item.document)}: {text}"


def named_kinds(policy: Mapping[str, Any]) -> frozenset[GroupVersionKind]:
    """Returns Kubernetes' own kinds that a policy's rules name; rules with a ``*`` name none."""
    matched = object_of(object_of(policy.get("spec")).get("matchConstraints"))
    kinds = set()
    for rule in objects_of(matched.get("resourceRules")):
        versions = texts_of(rule.get("apiVersions"))
        names = (*texts_of(rule.get("apiGroups")), *versions, *texts_of(rule.get("resources")))
        if WILDCARD not in names:
            kinds |= {
                GroupVersionKind(target.group, version, target.kind[1])
                for target in targets_of_rules([rule])
                for version in versions
                if WILDCARD not in target.kind and "/" not in target.resource
            }
    return frozenset(kinds)
