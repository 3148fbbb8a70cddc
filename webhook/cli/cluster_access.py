"""Shared by commands that read a cluster: finding and reading it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from webhook.cli.policy_options import KUBECONFIG, together
from webhook.cli.terminal import NoResult
from webhook.policy_kinds import known, table

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object

_Answer = TypeVar("_Answer")

NAMESPACE: Final = "waddle-system"
REVIEW_SECONDS: Final = 10.0
"""The time for one object, in seconds: an admission's default."""

AGAIN_SECONDS: Final = 0.2
"""Between two questions whether a kind is served by now."""

TEMPLATES: Final = table.TEMPLATES.resource
EXTENSIONS: Final = tuple(row.resource for row in known.EXTENSIONS if row.status is not None)
"""Policies beside templates and constraints."""


CONTEXT: Final = click.option(
    "--context", metavar="NAME", default=None, help="The context of the kubeconfig."
)
CONTEXTS: Final = click.option(
    "--context",
    "contexts",
    metavar="NAME",
    multiple=True,
    help="A context of the kubeconfig. Repeatable: each cluster has its own pages.",
)


_NAMESPACE: Final = click.option(
    "-n",
    "--namespace",
    default=NAMESPACE,
    show_default=True,
    help="The namespace that Waddle runs in.",
)

_ITS_STATE: Final = "Ask what it lacks: kubectl get --raw '/readyz?verbose'"
_OTHER_CLUSTER: Final = "Is this the right cluster? --kubeconfig and --context choose another"
_OTHER_ACCOUNT: Final = (
    "Have the right given to this account, or choose another by --kubeconfig or --context"
)

cluster_options: Final = together(KUBECONFIG, CONTEXT, _NAMESPACE)
"""The options for the cluster and Waddle's namespace in it."""

clusters_options: Final = together(KUBECONFIG, CONTEXTS, _NAMESPACE)
"""The options of a command that may follow several clusters."""


def failure_text(error: Exception) -> str:
    """Returns why a cluster was not read, and what to do next.

    ``error`` is a ``CredentialsError``, or one of :mod:`webhook.cluster.errors`.
    """
    from webhook.cluster.errors import ApiError, ApiUnreachable  # noqa: PLC0415  # brings aiohttp

    if isinstance(error, ApiUnreachable):
        return f"the API server did not answer: {error}. {_ITS_STATE}. {_OTHER_CLUSTER}"
    if not isinstance(error, ApiError):
        return f"no cluster was read: {error}"
    if error.status == 401 or error.is_forbidden:
        return f"the API server refused the request: {error}. {_OTHER_ACCOUNT}"
    return f"the API server answered with an error: {error}. {_ITS_STATE}"


def ask_cluster(
    kubeconfig: str | None,
    context: str | None,
    question: Callable[[ClusterClient], Coroutine[Any, Any, _Answer]],
) -> _Answer:
    """Runs a question to an API server; raises :class:`NoResult` if it was not read."""
    # Imported here: they load aiohttp and the event loop.
    from webhook.cluster import event_loop  # noqa: PLC0415
    from webhook.cluster.client import ClusterClient  # noqa: PLC0415
    from webhook.cluster.credentials import CredentialsError, load_credentials  # noqa: PLC0415
    from webhook.cluster.errors import ApiError, ApiUnreachable  # noqa: PLC0415

    async def run() -> _Answer:
        async with ClusterClient(load_credentials(kubeconfig, context=context)) as client:
            return await question(client)

    try:
        return event_loop.run(run())
    except (ApiError, ApiUnreachable, CredentialsError) as error:
        raise NoResult(failure_text(error)) from None


async def list_objects(
    client: ClusterClient,
    resource: Resource,
    namespace: str = "",
    query: Mapping[str, str] | None = None,
) -> list[Object]:
    """Returns all objects of a kind, page by page, each with its kind; none if it is not served.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    from webhook.cluster.errors import ApiError  # noqa: PLC0415  # brings aiohttp
    from webhook.cluster.page_size import list_pages  # noqa: PLC0415  # as above

    # Items of a built-in kind's list lack their kind.
    kind = {"apiVersion": resource.gvk.group_version, "kind": resource.gvk.kind}
    try:
        pages = list_pages(client, resource, namespace, query)
        return [kind | item async for page in pages for item in page]
    except ApiError as error:
        if error.is_absent:
            return []
        raise


async def await_served(client: ClusterClient, resource: Resource, *, within_seconds: float) -> None:
    """Waits until the API server serves a kind.

    Raises TimeoutError, and ApiError for other faults.
    """
    import asyncio  # noqa: PLC0415  # --help needs none of it

    from webhook.cluster.errors import ApiError  # noqa: PLC0415  # as above

    async with asyncio.timeout(within_seconds):
        while True:
            try:
                await client.request("GET", resource.collection(), query={"limit": "1"})
            except ApiError as error:
                if not error.is_absent:
                    raise
            else:
                return
            await asyncio.sleep(AGAIN_SECONDS)
