"""TokenReview and SubjectAccessReview: the user of a token, and the user's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.shapes import Json, object_of
from webhook.cluster.discovery import Discovery
from webhook.cluster.kinds import ACCESS_REVIEWS, TOKEN_REVIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient


async def user_of(client: ClusterClient, token: str) -> Json | None:
    """Returns the user of a bearer token, as TokenReview gives it; None if the token is not valid."""
    body = _question(TOKEN_REVIEWS, {"token": token})
    status = object_of((await client.create(TOKEN_REVIEWS, body)).get("status"))
    user = object_of(status.get("user"))
    return user if status.get("authenticated") is True and user.get("username") else None


async def may(client: ClusterClient, user: Mapping[str, Any], attributes: Json) -> bool:
    """Whether the API server's authorizer allows a user (from :func:`user_of`) a request."""
    return is_granted(await client.create(ACCESS_REVIEWS, access_review(user, attributes)))


async def may_list_all(
    client: ClusterClient, user: Mapping[str, Any], kinds: Iterable[GroupVersionKind]
) -> bool:
    """Whether a user may list each of these kinds everywhere.

    Raises :class:`~webhook.cluster.discovery.UnknownKind` for one that is not served.
    """
    discovery = Discovery(client)
    for gvk in kinds:
        resource = await discovery.resource(gvk)
        attributes = {"group": gvk.group, "resource": resource.plural, "verb": "list"}
        if not await may(client, user, {"resourceAttributes": attributes}):
            return False
    return True


def access_review(user: Mapping[str, Any], attributes: Json) -> Json:
    """Returns a SubjectAccessReview for ``resourceAttributes`` or ``nonResourceAttributes``."""
    spec: Json = {"user": user["username"], "groups": list(user.get("groups") or ()), **attributes}
    spec |= {name: user[name] for name in ("uid", "extra") if user.get(name)}
    return _question(ACCESS_REVIEWS, spec)


def is_granted(review: Mapping[str, Any]) -> bool:
    """Whether a SubjectAccessReview allows the request."""
    return object_of(review.get("status")).get("allowed") is True


def _question(resource: Resource, spec: Json) -> Json:
    gvk = resource.gvk
    return {"apiVersion": gvk.group_version, "kind": gvk.kind, "spec": spec}
