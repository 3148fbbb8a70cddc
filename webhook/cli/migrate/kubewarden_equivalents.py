"""Kubewarden's policies that members of the policy library replace, with their settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from webhook.api.shapes import Json, object_of, texts_of


class NoEquivalent(ValueError):
    """A policy, or a part of a group, has no replacement; the message names it and the remedy."""


def _without_settings(kind: str, ignored: tuple[str, ...] = ()) -> Callable[[Json], Json]:
    """Returns a policy whose settings allow nothing; ``ignored`` may be false."""

    def member(settings: Json) -> Json:
        only(settings, ignored)
        if present := [key for key in ignored if settings.get(key)]:
            raise NoEquivalent(f"{kind} has no equivalent of the setting {', '.join(present)}")
        return {"kind": kind}

    return member


def only(settings: Json, known: tuple[str, ...]) -> None:
    """Raises for a setting that no template replaces."""
    if others := sorted(settings.keys() - set(known)):
        raise NoEquivalent(f"its settings {', '.join(others)} have no equivalent")


def _privilege_escalation(settings: Json) -> Json:
    only(settings, (_ESCALATION_DEFAULT,))
    return {"kind": "DisallowPrivilegeEscalation"}


_ESCALATION_DEFAULT: Final = "default_allow_privilege_escalation"


def _trusted_repos(settings: Json) -> Json:
    only(settings, ("registries",))
    registries = object_of(settings.get("registries"))
    only(registries, ("allow",))
    return {"kind": "AllowRegistries", "parameters": {"registries": registries.get("allow", [])}}


def _safe_labels(settings: Json) -> Json:
    only(settings, ("mandatory_labels", "constrained_labels"))
    constrained = object_of(settings.get("constrained_labels"))
    labels = [
        {"key": key, **({"pattern": _anywhere(constrained[key])} if key in constrained else {})}
        for key in texts_of(settings.get("mandatory_labels"))
    ]
    if others := sorted(constrained.keys() - set(texts_of(settings.get("mandatory_labels")))):
        raise NoEquivalent(f"constrained_labels {', '.join(others)} are not in mandatory_labels")
    return {"kind": "RequireLabels", "parameters": {"labels": labels}}


def _anywhere(pattern: Any) -> Any:
    """Returns a pattern for the whole value; Kubewarden's matches a part, unless it says otherwise."""
    if type(pattern) is not str or _OF_WHOLE.fullmatch(pattern):
        return pattern
    return f".*(?:{pattern}).*"


_OF_WHOLE: Final = re.compile(r"\^[^|]*(?<!\\)\$")
"""A pattern that matches whole values alone."""

EQUIVALENTS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "pod-privileged": _without_settings(
        "DisallowPrivilegedContainers", ("skip_init_containers", "skip_ephemeral_containers")
    ),
    "allow-privilege-escalation-psp": _privilege_escalation,
    "host-namespaces-psp": _without_settings(
        "DisallowHostNamespaces", ("allow_host_ipc", "allow_host_network", "allow_host_pid")
    ),
    "trusted-repos": _trusted_repos,
    "safe-labels": _safe_labels,
}
"""Kubewarden's policies and members of the policy library with the same result."""


def differences(policy: str, settings: Json) -> Iterator[str]:
    """Yields where a member of the library decides otherwise than the policy that it replaces."""
    if (
        policy == "allow-privilege-escalation-psp"
        and settings.get(_ESCALATION_DEFAULT) is not False
    ):
        yield "DisallowPrivilegeEscalation also refuses containers without allowPrivilegeEscalation"
    elif policy == "host-namespaces-psp":
        yield "it refuses host ports, too: add a constraint of DisallowHostPorts"
    elif policy == "safe-labels":
        yield "RequireLabels also refuses a required label with an empty value"
