"""Answers the calls of Kyverno's policies to the cluster, registries and servers.

Nothing is fetched here. A missing fact is an error, and :attr:`World.missing` names it: the
reviewer then reports the policy as undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias

from webhook.api.gvk import gvk_of, name_of, namespace_of, plural_of
from webhook.api.shapes import Json, object_of
from webhook.cel.check.types import Type
from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.values import Duration, Opaque, Timestamp
from webhook.kyverno.images import read_reference

RESOURCES: Final = "kyverno.resources"
IMAGES: Final = "kyverno.imagedata"
TIME: Final = "kyverno.time"
GLOBALS: Final = "kyverno.globalcontext"
HTTP: Final = "kyverno.http"
GVR: Final = "kyverno.gvr"

KnownObjects: TypeAlias = Callable[[str, str], "Mapping[tuple[str, str], Json] | None"]
"""Objects of an apiVersion and resource, by namespace and name; None if they are unknown."""

_NAMED: Final = """
{get} .(kyverno.resources, string, string, string, string) map(string, dyn)
{get} .(kyverno.resources, kyverno.gvr, string, string) map(string, dyn)
{list} .(kyverno.resources, string, string, string) map(string, dyn)
{list} .(kyverno.resources, string, string, string, map(string, string)) map(string, dyn)
{list} .(kyverno.resources, kyverno.gvr, string) map(string, dyn)
{list} .(kyverno.resources, kyverno.gvr, string, map(string, string)) map(string, dyn)
"""
"""Calls in a cluster-wide policy: the namespace is an operand."""

_OWN: Final = """
{get} .(kyverno.resources, string, string, string) map(string, dyn)
{get} .(kyverno.resources, kyverno.gvr, string) map(string, dyn)
{list} .(kyverno.resources, string, string) map(string, dyn)
{list} .(kyverno.resources, string, string, map(string, string)) map(string, dyn)
{list} .(kyverno.resources, kyverno.gvr) map(string, dyn)
{list} .(kyverno.resources, kyverno.gvr, map(string, string)) map(string, dyn)
"""
"""Calls in a namespaced policy, which reads its own namespace only."""

_ALWAYS: Final = """
{gvr} .(kyverno.resources, string, string) kyverno.gvr
{metadata} .(kyverno.imagedata, string) dyn
{get} .(kyverno.globalcontext, string) dyn
{get} .(kyverno.globalcontext, string, string) dyn
{get} .(kyverno.http, string) dyn
{get} .(kyverno.http, string, map(string, string)) dyn
{post} .(kyverno.http, string, dyn) dyn
{post} .(kyverno.http, string, dyn, map(string, string)) dyn
{client} .(kyverno.http, string) kyverno.http
"""
_SPELLINGS: Final = (
    {"get": "Get", "list": "List", "gvr": "ToGVR", "post": "Post"}
    | {"client": "Client", "metadata": "GetMetadata"},
    {"get": "get", "list": "list", "gvr": "toGVR", "post": "post"}
    | {"client": "client", "metadata": "getMetadata"},
)
"""Spellings before 1.18 and since; later versions accept both."""

_TIMES: Final = """
now .(kyverno.time) Timestamp
truncate .(kyverno.time, Timestamp, Duration) Timestamp
toCron .(kyverno.time, Timestamp) string
"""


def overloads(*, namespaced: bool) -> str:
    """Returns the functions that read the world, as ``webhook.cel.check.overloads`` writes them."""
    table = (_OWN if namespaced else _NAMED) + _ALWAYS
    return _TIMES + "".join(table.format(**names) for names in _SPELLINGS)


VARIABLES: Final = {
    "resource": Type(RESOURCES),
    "image": Type(IMAGES),
    "time": Type(TIME),
    "globalContext": Type(GLOBALS),
    "http": Type(HTTP),
}

_NO_ANSWERS: Final[Mapping[str, Any]] = MappingProxyType({})


class World:
    """The known facts of one review. Used by one thread."""

    __slots__ = ("answers", "entries", "images", "is_whole", "known", "missing", "now_ns")

    def __init__(
        self,
        known: KnownObjects,
        now_ns: int = 0,
        *,
        images: Mapping[str, Json] = _NO_ANSWERS,
        answers: Mapping[str, Json] = _NO_ANSWERS,
        entries: Mapping[str, Any] = _NO_ANSWERS,
        is_whole: bool = False,
    ) -> None:
        """``answers`` are of servers, by URL or ``METHOD:URL``; ``entries`` the global context.

        ``now_ns`` is the time of the review, in nanoseconds since 1970. In a complete world,
        unknown objects do not exist.
        """
        self.known = known
        self.now_ns = now_ns
        self.images = images
        self.answers = answers
        self.entries = entries
        self.is_whole = is_whole
        self.missing: list[str] = []
        """The requested and missing keys."""

    def variables(self, namespace: str) -> dict[str, Any]:
        """Returns the variables of a policy's expressions.

        ``namespace`` is the policy's, if any.
        """
        return {
            "resource": Opaque(RESOURCES, (self, namespace), "resource"),
            "image": Opaque(IMAGES, self, "image"),
            "time": Opaque(TIME, self, "time"),
            "globalContext": Opaque(GLOBALS, (self, namespace), "globalContext"),
            "http": Opaque(HTTP, self, "http"),
        }

    def lacks(self, missing: str) -> NoReturn:
        """Records a missing fact, and ends the evaluation."""
        self.missing.append(missing)
        raise EvaluationError(missing)


def objects_known(objects: Iterable[Json]) -> KnownObjects:
    """Returns a world of these objects."""
    by_kind: dict[tuple[str, str], dict[tuple[str, str], Json]] = {}
    for item in objects:
        gvk = gvk_of(item)
        of_kind = by_kind.setdefault((gvk.group_version, plural_of(gvk.kind)), {})
        of_kind[namespace_of(item), name_of(item)] = item
    return lambda version, resource: by_kind.get((version, resource))


def synced_known(inventory: Mapping[str, Any], namespaces: Mapping[str, Any]) -> KnownObjects:
    """Returns the world of synced objects, as policies read them, and of the Namespaces."""

    def known(version: str, resource: str) -> Mapping[tuple[str, str], Json] | None:
        if (version, resource) == ("v1", "namespaces") and namespaces:
            return {("", name): item for name, item in namespaces.items()}
        objects: dict[tuple[str, str], Json] = {}
        places = {"": inventory.get("cluster") or {}, **(inventory.get("namespace") or {})}
        for place, versions in places.items():
            for kind, named in (versions.get(version) or {}).items():
                if plural_of(kind) == resource:
                    objects.update({(place, name): item for name, item in named.items()})
        return objects or None

    return known


# --- objects --------------------------------------------------------------------------------------


def _get(context: Opaque, version: str, resource: str, namespace: str, name: str) -> Any:
    """Returns the object of that name; null without one."""
    world: World = context.value[0]
    objects = world.known(version, resource)
    if objects is None and not world.is_whole:
        world.lacks(f'{resource} "{name}" ({version}) is not among what is given or synced')
    return (objects or {}).get((namespace, name))


def _list(
    context: Opaque, version: str, resource: str, namespace: str, labels: Mapping[str, str]
) -> Any:
    """Returns the objects of a kind in a namespace; in all if it is empty."""
    world: World = context.value[0]
    objects = world.known(version, resource)
    if objects is None and not world.is_whole:
        world.lacks(f"{resource} ({version}) are not among what is given or synced")
    items = [
        item
        for (place, _), item in (objects or {}).items()
        if namespace in {"", place} and _has(item, labels)
    ]
    return {"apiVersion": version, "kind": "List", "items": items}


def _has(item: Json, labels: Mapping[str, str]) -> bool:
    item_labels = object_of(object_of(item.get("metadata")).get("labels"))
    return all(item_labels.get(name) == value for name, value in labels.items())


def _get_own(context: Opaque, version: str, resource: str, name: str) -> Any:
    return _get(context, version, resource, context.value[1], name)


def _list_own(
    context: Opaque, version: str, resource: str, labels: Mapping[str, str] = {}
) -> Any:  # never written
    return _list(context, version, resource, context.value[1], labels)


def _to_gvr(_: Opaque, version: str, kind: str) -> Opaque:
    """Returns the resource of a kind."""
    return Opaque(GVR, (version, plural_of(kind)))


def _get_of(context: Opaque, gvr: Opaque, namespace: str, name: str) -> Any:
    version, resource = gvr.value
    return _get(context, version, resource, namespace, name)


def _get_own_of(context: Opaque, gvr: Opaque, name: str) -> Any:
    return _get_of(context, gvr, context.value[1], name)


def _list_all(context: Opaque, version: str, resource: str, namespace: str) -> Any:
    return _list(context, version, resource, namespace, {})


def _list_of(context: Opaque, gvr: Opaque, namespace: str, labels: Mapping[str, str] = {}) -> Any:
    version, resource = gvr.value
    return _list(context, version, resource, namespace, labels)


def _list_own_of(context: Opaque, gvr: Opaque, labels: Mapping[str, str] = {}) -> Any:
    return _list_of(context, gvr, context.value[1], labels)


for _name in ("Get", "get"):
    form(_name, RESOURCES, str, str, str, str)(_get)
    form(_name, RESOURCES, str, str, str)(_get_own)
    form(_name, RESOURCES, GVR, str, str)(_get_of)
    form(_name, RESOURCES, GVR, str)(_get_own_of)
for _name in ("List", "list"):
    form(_name, RESOURCES, str, str, str)(_list_all)
    form(_name, RESOURCES, str, str, str, dict)(_list)
    form(_name, RESOURCES, GVR, str)(_list_of)
    form(_name, RESOURCES, GVR, str, dict)(_list_of)
    form(_name, RESOURCES, str, str)(_list_own)
    form(_name, RESOURCES, str, str, dict)(_list_own)
    form(_name, RESOURCES, GVR)(_list_own_of)
    form(_name, RESOURCES, GVR, dict)(_list_own_of)
for _name in ("ToGVR", "toGVR"):
    form(_name, RESOURCES, str, str)(_to_gvr)


# --- images, entries of the global context, servers, the time -------------------------------------


@form("GetMetadata", IMAGES, str)
@form("getMetadata", IMAGES, str)
def metadata(context: Opaque, reference: str) -> Any:
    """Returns a registry's metadata of an image."""
    world: World = context.value
    image = read_reference(reference)
    for name in (reference, *(image.names() if image is not None else ())):
        if name in world.images:
            return world.images[name]
    return world.lacks(f'no registry is asked about the image "{reference}"')


@form("Get", GLOBALS, str)
@form("Get", GLOBALS, str, str)
@form("get", GLOBALS, str)
@form("get", GLOBALS, str, str)
def entry(context: Opaque, name: str, projection: str = "") -> Any:
    """Returns an entry of the global context; in a complete world, null without one."""
    world: World = context.value[0]
    if context.value[1]:
        raise EvaluationError("a policy of a namespace may not read the global context")
    if name not in world.entries and not world.is_whole:
        world.lacks(f'the global context entry "{name}" is not given')
    value = world.entries.get(name)
    if not projection or value is None:
        return value
    if type(value) is not dict or projection not in value:
        raise EvaluationError(f'projection "{projection}" not found in the entry "{name}"')
    return value[projection]


def _http_call(method: str, context: Opaque, url: str) -> Any:
    world: World = context.value
    for key in (f"{method}:{url}", url):
        if key in world.answers:
            return world.answers[key]
    return world.lacks(f"no server is asked: {method} {url}")


for _name in ("Get", "get"):
    form(_name, HTTP, str)(lambda context, url: _http_call("GET", context, url))
    form(_name, HTTP, str, dict)(lambda context, url, _: _http_call("GET", context, url))
for _name in ("Post", "post"):
    form(_name, HTTP, str, None)(lambda context, url, _: _http_call("POST", context, url))
    form(_name, HTTP, str, None, dict)(lambda context, url, *_: _http_call("POST", context, url))
for _name in ("Client", "client"):
    form(_name, HTTP, str)(lambda context, _: context)


@form("now", TIME)
def now(context: Opaque) -> Timestamp:
    """The time of the review."""
    return Timestamp(context.value.now_ns)


@form("truncate", TIME, Timestamp, Duration)
def truncate(_: Opaque, moment: Timestamp, step: Duration) -> Timestamp:
    """Returns the last multiple of a step since the year 1, as Go counts."""
    if step.ns <= 0:
        return moment
    return Timestamp(moment.ns - (moment.ns + _YEAR_1_NS) % step.ns, moment.offset_seconds)


@form("toCron", TIME, Timestamp)
def to_cron(_: Opaque, moment: Timestamp) -> str:
    """Returns the cron schedule of one time a year."""
    at = datetime.fromtimestamp(moment.ns // 1_000_000_000 + moment.offset_seconds, UTC)
    return f"{at.minute} {at.hour} {at.day} {at.month} {at.isoweekday() % 7}"


_YEAR_1_NS: Final = 62_135_596_800 * 1_000_000_000
"""From the year 1 to 1970."""
