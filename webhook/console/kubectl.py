"""Writes kubectl commands for the objects of a page; the console itself changes nothing."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import split_group_version
from webhook.api.revision import ROLLBACK
from webhook.api.shapes import annotations_of, object_of
from webhook.constraint import rollout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.console.picture import ShownPolicy

Command = dict[str, str]
"""A command: its purpose (``what``), and its text (``command``)."""

_ACTIONS: Final = {
    "deny": "deny its violations",
    "warn": "only warn of its violations",
    "dryrun": "only record its violations",
}
_ENDS: Final = {
    rollout.PAUSE: "go on with the roll-out",
    rollout.ABORT: "begin the roll-out anew",
}
_STAGES: Final = "dryrun after=24h, warn after=24h"
_SPARED_MAX: Final = 5
"""The most policies for which the page of an object shows a command."""


def of_policy(item: ShownPolicy) -> list[Command]:
    """Returns commands to show a policy, change its action, roll it out or back, or remove it."""
    offered = [_typed("show it with its status", "get", *_policy(item), "-o", "yaml")]
    offered += _rolled(item)
    if item.category == "constraint":
        offered += _strictness(item)
        offered.append(_spare(item, "spare a namespace", "NAMESPACE"))
    offered.append(_typed("remove it", "delete", *_policy(item)))
    return offered


def of_resource(resource: Sequence[str], policies: Iterable[ShownPolicy]) -> list[Command]:
    """Returns commands that show an object and exempt its namespace from violated policies."""
    api_version, kind, namespace, name = resource
    if not kind or not name:
        return []
    group, _ = split_group_version(api_version)
    full = f"{kind.lower()}.{group}" if group else kind.lower()
    place = ("-n", namespace) if namespace else ()
    offered = [_typed("see it", *place, "get", full, name, "-o", "yaml")]
    if namespace:
        offered += [
            _spare(item, f"exclude its namespace from {item.kind}/{item.name}", namespace)
            for item in list(policies)[:_SPARED_MAX]
        ]
    return offered


def at(context: str, commands: Iterable[Command]) -> list[Command]:
    """Returns the commands for a context; "" stands for kubectl's current context."""
    option = f"kubectl --context={shlex.quote(context)} " if context else "kubectl "
    return [
        {**command, "command": option + command["command"].removeprefix("kubectl ")}
        for command in commands
    ]


def of_replica(namespace: str, name: str) -> list[Command]:
    """Returns commands that show the log and the description of a replica."""
    return [
        _typed("show its log", "-n", namespace, "logs", name, "--all-containers", "--tail=100"),
        _typed("show what its node reports", "-n", namespace, "describe", "pod", name),
    ]


def _rolled(item: ShownPolicy) -> list[Command]:
    """Returns commands that roll a policy back, pause or abort its roll-out, or undo that."""
    set_ = annotations_of(item.document)
    offered = [
        _annotated(
            item,
            f"roll back to generation {revision.generation}",
            f"{ROLLBACK}={revision.generation}",
        )
        for revision in item.revisions
        if revision.generation != item.generation and set_.get(ROLLBACK) != str(revision.generation)
    ]
    if ROLLBACK in set_:
        offered.append(_annotated(item, "enforce the spec again", f"{ROLLBACK}-"))
    if item.rollout is None:
        return offered
    for name, title in (
        (rollout.PAUSE, "pause the roll-out"),
        (rollout.ABORT, "abort the roll-out"),
    ):
        if set_.get(name) == "true":
            offered.append(_annotated(item, _ENDS[name], f"{name}-"))
        else:
            offered.append(_annotated(item, title, f"{name}=true"))
    return offered


def _strictness(item: ShownPolicy) -> list[Command]:
    """Returns commands that change a constraint's action; none if a roll-out sets it."""
    if item.rollout is not None or item.action not in _ACTIONS:
        return []
    offered = [
        _typed(
            title, "patch", *_policy(item), "--type=merge", "-p", _spec(enforcementAction=action)
        )
        for action, title in _ACTIONS.items()
        if action != item.action
    ]
    if item.action == "deny":
        stages = f"{rollout.ANNOTATION}={_STAGES}"
        offered.append(_annotated(item, "roll it out in stages", stages))
    return offered


def _spare(item: ShownPolicy, title: str, namespace: str) -> Command:
    """Returns the command that adds a namespace to a constraint's ``excludedNamespaces``."""
    match = object_of(object_of(item.document.get("spec")).get("match"))
    known = match.get("excludedNamespaces")
    excluded = [*(known if isinstance(known, list) else ()), namespace]
    patch = _spec(match={"excludedNamespaces": excluded})
    return _typed(title, "patch", *_policy(item), "--type=merge", "-p", patch)


def _spec(**fields: Any) -> str:
    return json.dumps({"spec": fields}, separators=(",", ":"))


def _annotated(item: ShownPolicy, title: str, annotation: str) -> Command:
    overwrite = () if annotation.endswith("-") else ("--overwrite",)
    return _typed(title, "annotate", *_policy(item), annotation, *overwrite)


def _policy(item: ShownPolicy) -> tuple[str, str]:
    return item.kind.lower(), item.name


def _typed(title: str, *words: str) -> Command:
    return {"what": title, "command": shlex.join(("kubectl", *words))}
