"""``waddle report``: the results in a cluster's policy reports, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import failure_text
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import KUBECONFIG
from webhook.cli.report import view as report_view
from webhook.cli.terminal import complain, write

if TYPE_CHECKING:
    from webhook.cluster.client import ClusterClient
    from webhook.reports.confirmation import Confirmation
    from webhook.reports.report_api import ReportApi
    from webhook.reports.summary import ReportSummary

_HELP = """Show the top violations by policy, namespace and resource.

Read from the policy reports of a cluster, which `--reports` has the audit and the
webhook write, whether there is one for each resource or for each policy and namespace.
"""


@click.command("report", help=_HELP + exit_codes.paragraph("report"))
@KUBECONFIG
@click.option("--context", metavar="NAME", default=None, help="The context of the kubeconfig.")
@click.option(
    "-n",
    "--namespace",
    default="",
    help=(
        "Only resources of this namespace. The default is all namespaces and cluster-wide kinds."
    ),
)
@click.option(
    "--report-api",
    type=click.Choice(["wgpolicyk8s", "openreports"]),
    default=None,
    help="The reports to read. By default those that the cluster has; of both, the first.",
)
@click.option(
    "--all-sources", is_flag=True, help="Also count the results of other products' reports."
)
@click.option(
    "--excused",
    is_flag=True,
    help="Show excused violations instead, with their exceptions and when these end.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Lines of each table.",
)
@output_option(*words.SHORT)
def command(  # one parameter for each option
    *,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    report_api: str | None,
    all_sources: bool,
    excused: bool,
    top: int,
    output: str,
) -> int:
    """Read the reports once and show what they say."""
    # Imported here: they load aiohttp and the event loop.
    from webhook.cluster import event_loop  # noqa: PLC0415
    from webhook.cluster.client import ClusterClient  # noqa: PLC0415
    from webhook.cluster.credentials import CredentialsError, load_credentials  # noqa: PLC0415
    from webhook.cluster.errors import ApiError, ApiUnreachable  # noqa: PLC0415
    from webhook.reports.report_api import APIS  # noqa: PLC0415

    apis = [APIS[report_api]] if report_api else list(APIS.values())

    async def look() -> tuple[ReportSummary | None, list[Confirmation]]:
        async with ClusterClient(load_credentials(kubeconfig, context=context)) as client:
            summary = await summarize(client, apis, namespace, all_sources=all_sources)
            return summary, await confirmations(client)

    try:
        summary, confirmed = event_loop.run(look())
    except (ApiError, ApiUnreachable, CredentialsError) as error:
        complain(failure_text(error))
        return exit_codes.UNKNOWN
    if summary is None:
        names = ", ".join(api.namespaced.gvk.group for api in apis)
        complain(f"the cluster serves no policy reports ({names}): apply manifests/reports")
        return exit_codes.UNKNOWN
    if output == "json":
        write(report_view.as_json(summary, confirmed))
    elif excused:
        write(report_view.as_excused(summary))
    else:
        write(report_view.as_tables(summary, top, confirmed))
    return 0


async def summarize(
    client: ClusterClient, apis: list[ReportApi], namespace: str, *, all_sources: bool
) -> ReportSummary | None:
    """Summarizes the reports of the first API that has any; None if none is served.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    from webhook.cluster.errors import ApiError  # noqa: PLC0415  # see command
    from webhook.cluster.page_size import list_pages  # noqa: PLC0415
    from webhook.reports.known import results_by_subject  # noqa: PLC0415
    from webhook.reports.report import of_source  # noqa: PLC0415
    from webhook.reports.summary import ReportSummary  # noqa: PLC0415

    summary: ReportSummary | None = None
    for api in apis:
        if summary is not None and summary.total:
            break
        kinds = [api.namespaced] if namespace else api.resources
        try:
            for resource in kinds:
                async for page in list_pages(client, resource, namespace):
                    summary = summary or ReportSummary()
                    for document in page:
                        shown = document if all_sources else of_source(document)
                        for subject, findings in results_by_subject(shown):
                            summary.add(subject, findings)
        except ApiError as error:
            if not error.is_absent:
                raise
    return summary


async def confirmations(client: ClusterClient) -> list[Confirmation]:
    """Reads the times of the audits' last sweeps; an empty list if the user may not read Leases.

    Raises :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    from webhook.cluster.errors import ApiError  # noqa: PLC0415  # see command
    from webhook.cluster.kinds import LEASES  # noqa: PLC0415
    from webhook.reports import confirmation  # noqa: PLC0415

    query = {"labelSelector": confirmation.SELECTOR}
    try:
        listed = await client.request("GET", LEASES.collection(), query=query)
    except ApiError:
        return []
    return [
        confirmed for item in listed["items"] if (confirmed := confirmation.read(item)) is not None
    ]
