"""The merge types of a kind's fields, for policies that apply a configuration.

Some lists have keys, some are sets, and some values are replaced as a whole
(structured-merge-diff). A table has the types of Kubernetes' own kinds; CustomResourceDefinitions
have those of others. A list in neither is replaced as a whole. All other values are merged field by
field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from webhook.api.builtin_kinds import BUILTIN_GROUPS
from webhook.api.gvk import GroupVersionKind
from webhook.api.shapes import object_of
from webhook.values import dataclass

_TABLE: Final = """
admissionregistration.v1.MutatingAdmissionPolicyBindingSpec matchResources! paramRef!
admissionregistration.v1.MutatingAdmissionPolicySpec matchConditions[name=] matchConstraints!
  paramKind!
admissionregistration.v1.MutatingWebhook matchConditions[name=] namespaceSelector!
  objectSelector!
admissionregistration.v1.MutatingWebhookConfiguration
  webhooks[name=]admissionregistration.v1.MutatingWebhook
admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec matchResources! paramRef!
  validationActions{}
admissionregistration.v1.ValidatingAdmissionPolicySpec matchConditions[name=] matchConstraints!
  paramKind! variables[name=]admissionregistration.v1.Variable
admissionregistration.v1.ValidatingAdmissionPolicyStatus conditions[type=]
admissionregistration.v1.ValidatingWebhook matchConditions[name=] namespaceSelector!
  objectSelector!
admissionregistration.v1.ValidatingWebhookConfiguration
  webhooks[name=]admissionregistration.v1.ValidatingWebhook
apps.v1.ControllerRevision data!
apps.v1.DaemonSetSpec selector! template:core.v1.PodTemplateSpec
apps.v1.DaemonSetStatus conditions[type=]
apps.v1.DeploymentSpec selector! template:core.v1.PodTemplateSpec
apps.v1.DeploymentStatus conditions[type=]
apps.v1.ReplicaSetSpec selector! template:core.v1.PodTemplateSpec
apps.v1.ReplicaSetStatus conditions[type=]
apps.v1.StatefulSetSpec selector! template:core.v1.PodTemplateSpec
apps.v1.StatefulSetStatus conditions[type=]
autoscaling.v1.HorizontalPodAutoscalerSpec scaleTargetRef!
autoscaling.v2.HorizontalPodAutoscalerStatus conditions[type=]
batch.v1.CronJobSpec jobTemplate:batch.v1.JobTemplateSpec
batch.v1.JobSpec selector! template:core.v1.PodTemplateSpec
batch.v1.JobStatus uncountedTerminatedPods:batch.v1.UncountedTerminatedPods
batch.v1.JobTemplateSpec spec:batch.v1.JobSpec
batch.v1.UncountedTerminatedPods failed{} succeeded{}
certificates.v1.CertificateSigningRequestStatus conditions[type=]
core.v1.Affinity nodeAffinity:core.v1.NodeAffinity
core.v1.CSIPersistentVolumeSource controllerExpandSecretRef! controllerPublishSecretRef!
  nodeExpandSecretRef! nodePublishSecretRef! nodeStageSecretRef!
core.v1.CSIVolumeSource nodePublishSecretRef!
core.v1.CephFSPersistentVolumeSource secretRef!
core.v1.CephFSVolumeSource secretRef!
core.v1.CinderPersistentVolumeSource secretRef!
core.v1.CinderVolumeSource secretRef!
core.v1.ComponentStatus conditions[type=]
core.v1.Container env[name=]core.v1.EnvVar ports[containerPort=0,protocol=TCP]
  resources:core.v1.ResourceRequirements volumeDevices[devicePath=] volumeMounts[mountPath=]
core.v1.EnvVar valueFrom:core.v1.EnvVarSource
core.v1.EnvVarSource configMapKeyRef! fieldRef! fileKeyRef! resourceFieldRef! secretKeyRef!
core.v1.EphemeralContainer env[name=]core.v1.EnvVar ports[containerPort=0,protocol=TCP]
  resources:core.v1.ResourceRequirements volumeDevices[devicePath=] volumeMounts[mountPath=]
core.v1.EphemeralVolumeSource volumeClaimTemplate:core.v1.PersistentVolumeClaimTemplate
core.v1.Event involvedObject! related!
core.v1.FlexPersistentVolumeSource secretRef!
core.v1.FlexVolumeSource secretRef!
core.v1.ISCSIPersistentVolumeSource secretRef!
core.v1.ISCSIVolumeSource secretRef!
core.v1.NamespaceStatus conditions[type=]
core.v1.NodeAffinity requiredDuringSchedulingIgnoredDuringExecution!
core.v1.NodeSpec podCIDRs{}
core.v1.NodeStatus addresses[type=] conditions[type=]
core.v1.PersistentVolumeClaimSpec dataSource! selector!
core.v1.PersistentVolumeClaimStatus conditions[type=]
core.v1.PersistentVolumeClaimTemplate spec:core.v1.PersistentVolumeClaimSpec
core.v1.PersistentVolumeSpec cephfs:core.v1.CephFSPersistentVolumeSource
  cinder:core.v1.CinderPersistentVolumeSource claimRef! csi:core.v1.CSIPersistentVolumeSource
  flexVolume:core.v1.FlexPersistentVolumeSource iscsi:core.v1.ISCSIPersistentVolumeSource
  nodeAffinity:core.v1.VolumeNodeAffinity rbd:core.v1.RBDPersistentVolumeSource
  scaleIO:core.v1.ScaleIOPersistentVolumeSource storageos:core.v1.StorageOSPersistentVolumeSource
core.v1.PodSpec affinity:core.v1.Affinity containers[name=]core.v1.Container
  ephemeralContainers[name=]core.v1.EphemeralContainer hostAliases[ip=]
  imagePullSecrets[name=]core.v1.LocalObjectReference initContainers[name=]core.v1.Container
  nodeSelector! resourceClaims[name=] resources:core.v1.ResourceRequirements
  schedulingGates[name=]
  topologySpreadConstraints[topologyKey=,whenUnsatisfiable=]core.v1.TopologySpreadConstraint
  volumes[name=]core.v1.Volume
core.v1.PodStatus conditions[type=] podIPs[ip=] resourceClaimStatuses[name=]
  resources:core.v1.ResourceRequirements
core.v1.PodTemplate template:core.v1.PodTemplateSpec
core.v1.PodTemplateSpec spec:core.v1.PodSpec
core.v1.RBDPersistentVolumeSource secretRef!
core.v1.RBDVolumeSource secretRef!
core.v1.ReplicationControllerSpec selector! template:core.v1.PodTemplateSpec
core.v1.ReplicationControllerStatus conditions[type=]
core.v1.ResourceQuotaSpec scopeSelector!
core.v1.ResourceRequirements claims[name=]
core.v1.ScaleIOPersistentVolumeSource secretRef!
core.v1.ScaleIOVolumeSource secretRef!
core.v1.ServiceAccount secrets[name]core.v1.ObjectReference
core.v1.ServiceSpec ports[port=0,protocol=TCP] selector!
core.v1.ServiceStatus conditions[type=]
core.v1.StorageOSPersistentVolumeSource secretRef!
core.v1.StorageOSVolumeSource secretRef!
core.v1.TopologySpreadConstraint labelSelector!
core.v1.Volume cephfs:core.v1.CephFSVolumeSource cinder:core.v1.CinderVolumeSource
  csi:core.v1.CSIVolumeSource ephemeral:core.v1.EphemeralVolumeSource
  flexVolume:core.v1.FlexVolumeSource iscsi:core.v1.ISCSIVolumeSource rbd:core.v1.RBDVolumeSource
  scaleIO:core.v1.ScaleIOVolumeSource storageos:core.v1.StorageOSVolumeSource
core.v1.VolumeNodeAffinity required!
events.v1.Event regarding! related!
flowcontrol.v1.FlowSchemaStatus conditions[type]
flowcontrol.v1.PriorityLevelConfigurationStatus conditions[type]
meta.v1.ObjectMeta finalizers{} ownerReferences[uid=]meta.v1.OwnerReference
networking.v1.IngressBackend resource! service:networking.v1.IngressServiceBackend
networking.v1.IngressServiceBackend port!
networking.v1.IngressSpec defaultBackend:networking.v1.IngressBackend
networking.v1.NetworkPolicySpec podSelector!
networking.v1.ServiceCIDRStatus conditions[type=]
node.v1.RuntimeClass scheduling:node.v1.Scheduling
node.v1.Scheduling nodeSelector!
policy.v1.PodDisruptionBudgetSpec selector!
policy.v1.PodDisruptionBudgetStatus conditions[type=]
rbac.v1.ClusterRoleBinding roleRef!
rbac.v1.RoleBinding roleRef!
resource.v1.AllocatedDeviceStatus conditions[type=] data!
resource.v1.AllocationResult nodeSelector!
resource.v1.ResourceClaimStatus allocation:resource.v1.AllocationResult
  devices[driver=,device=,pool=,shareID]resource.v1.AllocatedDeviceStatus reservedFor[uid=]
resource.v1.ResourceSliceSpec nodeSelector!
storage.v1.CSIDriverSpec volumeLifecycleModes{}
storage.v1.CSINodeSpec drivers[name=]
storage.v1.CSIStorageCapacity nodeTopology!
storage.v1.VolumeAttachmentSource inlineVolumeSpec:core.v1.PersistentVolumeSpec
storage.v1.VolumeAttachmentSpec source:storage.v1.VolumeAttachmentSource
"""
"""The types that are not merged field by field throughout, with the relevant fields (client-go
0.36, applyconfigurations/internal): ``f:Type`` has that type, ``f[key]Type`` is a list of it by
keys, which may have defaults, ``f{}`` a set, and ``f!`` an atomic value. Fields whose types follow
from their names are left out: ``metadata``, and ``spec`` and ``status`` of a kind."""

_FIELD: Final = re.compile(r"([^][:{!]+)(?:\[(.*)\])?(\{\}|!|:)?(.*)")


@dataclass(frozen=True, slots=True)
class MergeKey:
    """A key of a list's items; ``default`` is the value for items without the field."""

    name: str
    default: str | int | None


class MergeType(Protocol):
    """The way in which a value is merged."""

    @property
    def is_whole(self) -> bool:
        """Whether an object is replaced as a whole."""

    @property
    def keys(self) -> tuple[MergeKey, ...]:
        """The key fields of a list's items; empty for a list without keys."""

    @property
    def is_set(self) -> bool:
        """Whether a list is a set: each item occurs once."""

    def field(self, name: str) -> MergeType:
        """Returns the merge type of a field's value."""

    def item(self) -> MergeType:
        """Returns the merge type of a list's items."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A merge type of the table."""

    type_name: str = ""
    is_whole: bool = False
    keys: tuple[MergeKey, ...] = ()
    is_set: bool = False

    def field(self, name: str) -> MergeType:
        """Returns the merge type of a field's value."""
        known = _types().get(self.type_name, {}).get(name)
        if known is not None or not self.type_name:
            return known or _PLAIN
        if name == "metadata":
            return _METADATA
        return _Named(f"{self.type_name}{name.title()}") if name in {"spec", "status"} else _PLAIN

    def item(self) -> MergeType:
        """Returns the merge type of a list's items."""
        return _Named(self.type_name)


_PLAIN: Final = _Named()
_METADATA: Final = _Named("meta.v1.ObjectMeta")


@lru_cache(maxsize=1)
def _types() -> dict[str, dict[str, _Named]]:
    """Returns the table by type and field."""
    named_types: dict[str, dict[str, _Named]] = {}
    for row in _TABLE.strip().replace("\n  ", " ").splitlines():
        name, *fields = row.split(" ")
        named_types[name] = dict(map(_field, fields))
    return named_types


def _field(text: str) -> tuple[str, _Named]:
    match = _FIELD.fullmatch(text)
    assert match is not None, text
    name, keys, mark, of = match.groups()
    if keys is not None:
        return name, _Named(of, keys=tuple(map(_key, keys.split(","))))
    if mark == "{}":
        return name, _Named(is_set=True)
    if mark == "!":
        return name, _Named(is_whole=True)
    return name, _Named(of)


def _key(text: str) -> MergeKey:
    name, sign, default = text.partition("=")
    if not sign:
        return MergeKey(name, None)
    return MergeKey(name, int(default) if default.isdecimal() else default)


@dataclass(frozen=True, slots=True)
class _Described:
    """A merge type from the schema of a custom resource."""

    schema: Mapping[str, Any]
    is_root: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether an object is replaced as a whole."""
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def keys(self) -> tuple[MergeKey, ...]:
        """Returns the merge keys of a list of the type ``map``."""
        if self.schema.get("x-kubernetes-list-type") != "map":
            return ()
        fields = object_of(object_of(self.schema.get("items")).get("properties"))
        names = self.schema.get("x-kubernetes-list-map-keys") or ()
        return tuple(MergeKey(name, object_of(fields.get(name)).get("default")) for name in names)

    @property
    def is_set(self) -> bool:
        """Whether it is a list of the type ``set``."""
        return self.schema.get("x-kubernetes-list-type") == "set"

    def field(self, name: str) -> MergeType:
        """Returns the merge type of a field's value; every object has the same metadata."""
        if self.is_root and name == "metadata":
            return _METADATA
        known = object_of(object_of(self.schema.get("properties")).get(name))
        return _Described(known or object_of(self.schema.get("additionalProperties")))

    def item(self) -> MergeType:
        """Returns the merge type of a list's items."""
        return _Described(object_of(self.schema.get("items")))


def merge_type(gvk: GroupVersionKind, definitions: Iterable[Mapping[str, Any]]) -> MergeType:
    """Returns the merge type of a kind; ``definitions`` are CustomResourceDefinitions."""
    if gvk.group in BUILTIN_GROUPS:
        package = _PACKAGES.get(gvk.group) or gvk.group.partition(".")[0]
        return _Named(f"{package}.{gvk.version}.{gvk.kind}")
    for definition in definitions:
        spec = object_of(definition.get("spec"))
        if (spec.get("group"), object_of(spec.get("names")).get("kind")) != gvk.group_kind:
            continue
        for version in spec.get("versions") or ():
            if version.get("name") == gvk.version:
                schema = object_of(object_of(version.get("schema")).get("openAPIV3Schema"))
                return _Described(schema, is_root=True)
    return _Described({}, is_root=True)


_PACKAGES: Final = {"": "core", "rbac.authorization.k8s.io": "rbac"}
"""The Go package of a group whose package is not the first word of its name."""
