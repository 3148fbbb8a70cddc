"""Finds the parameters of a binding among the known objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.admission_policies.kinds import ConfigurationFault
from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.gvk import GroupVersionKind, labels_of, name_of, namespace_of
from webhook.api.scope import is_cluster_scoped
from webhook.api.shapes import object_of
from webhook.constraint.selector import compile_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.admission_policies.reading import AdmissionBinding, AdmissionPolicy, MutatingPolicy
    from webhook.api.shapes import Json

    Find: TypeAlias = Callable[[GroupVersionKind], Sequence[Mapping[str, Any]]]
    """Returns all known objects of a kind, in its version."""

NOTHING: Final[tuple[None]] = (None,)

UNNAMED: Final = "default"
"""The namespace of an object that names none."""

DEFINITIONS: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class UnknownParameters(Exception):
    """The existing parameters of a kind are unknown, so a policy cannot decide."""


class ParameterStore:
    """The parameters of a cluster, and the scopes of their kinds."""

    def __init__(self) -> None:
        self._objects: dict[GroupVersionKind, Sequence[Mapping[str, Any]]] = {}
        self._namespaced: dict[GroupVersionKind, bool] = {}
        self._unlisted: dict[GroupVersionKind, str] = {}

    def put(
        self, kind: GroupVersionKind, objects: Sequence[Mapping[str, Any]], *, namespaced: bool
    ) -> None:
        """Stores all objects of a kind."""
        self._objects[kind] = objects
        self._namespaced[kind] = namespaced

    def lack(self, kind: GroupVersionKind, why: str) -> None:
        """Records that the objects of a kind cannot be listed."""
        self._unlisted[kind] = why

    def check(self, policy: AdmissionPolicy | MutatingPolicy, binding: AdmissionBinding) -> None:
        """Raises :class:`UnknownParameters` if the policy's parameters cannot be listed."""
        kind = policy.param_kind
        if kind is not None and binding.param_ref is not None and kind in self._unlisted:
            raise UnknownParameters(f"parameters of {kind}: {self._unlisted[kind]}")

    def why_unknown(self, kind: GroupVersionKind) -> str:
        """Returns the reason why the objects of a kind are unknown; empty if they are known."""
        return self._unlisted.get(kind, "")

    def find(self, kind: GroupVersionKind) -> Sequence[Mapping[str, Any]]:
        """Returns all known objects of a kind."""
        return self._objects.get(kind, ())

    def namespaced(self, kind: GroupVersionKind) -> bool | None:
        """Whether a kind is namespaced; None for an unknown kind."""
        return self._namespaced.get(kind)


def parameters_of(
    policy: AdmissionPolicy | MutatingPolicy,
    binding: AdmissionBinding,
    request: Json,
    find: Find,
    *,
    namespaced: bool | None = None,
) -> Sequence[Any]:
    """Returns the parameters of a policy; it is evaluated with each. (None,) if it takes none.

    ``namespaced`` is whether the parameters' kind is namespaced; None if unknown. Raises
    :class:`~webhook.admission_policies.kinds.ConfigurationFault`.
    """
    kind, reference = policy.param_kind, binding.param_ref
    if kind is None or reference is None:
        return NOTHING
    known = find(kind)
    place = reference.get("namespace") or ""
    if is_namespaced(kind, known, find) if namespaced is None else namespaced:
        place = place or request.get("namespace") or ""
        if not place:
            raise ConfigurationFault(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        known = [parameter for parameter in known if (namespace_of(parameter) or UNNAMED) == place]
    elif place and known:
        raise ConfigurationFault(
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
        )
    named = _named(reference, known)
    if not named and reference["parameterNotFoundAction"] == "Deny":
        raise ConfigurationFault(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    return named


def is_namespaced(kind: GroupVersionKind, known: Sequence[Mapping[str, Any]], find: Find) -> bool:
    """Whether a kind of parameters is namespaced.

    There are three cases:

    - a table has Kubernetes' own kinds;
    - a CustomResourceDefinition, if there is one, has the scope of its kind;
    - any other kind is namespaced if one of its objects has a namespace.
    """
    if kind.group_kind in BUILTIN_KINDS:
        return not is_cluster_scoped(*kind.group_kind)
    for definition in find(DEFINITIONS):
        spec = object_of(definition.get("spec"))
        names = object_of(spec.get("names"))
        if (spec.get("group"), names.get("kind")) == kind.group_kind:
            return spec.get("scope") == "Namespaced"
    return any(namespace_of(parameter) for parameter in known)


def named_parameters(
    reference: Json, kind: GroupVersionKind, find: Find
) -> Sequence[Mapping[str, Any]]:
    """Returns the parameters of a ``paramRef``, in its namespace, or in any if it names none."""
    known = find(kind)
    place = reference.get("namespace")
    if place and is_namespaced(kind, known, find):
        known = [parameter for parameter in known if (namespace_of(parameter) or UNNAMED) == place]
    return _named(reference, known)


def _named(reference: Json, known: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    name = reference.get("name")
    if name:
        return [parameter for parameter in known if name_of(parameter) == name]
    selects = compile_selector(reference.get("selector") or {})
    return [parameter for parameter in known if selects(labels_of(parameter))]
