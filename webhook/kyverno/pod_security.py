"""The Pod Security Standards as CEL validations, one for each control.

The names of controls are those of Kyverno's rules. The source is
https://kubernetes.io/docs/concepts/security/pod-security-standards/, version ``latest``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.api.shapes import objects_of
from webhook.kyverno.patterns import Unwritable

if TYPE_CHECKING:
    from webhook.api.shapes import Json

_ANNOTATIONS: Final = "(has(object.metadata) ? object.metadata.?annotations.orValue({}) : {})"
_VARIABLES: Final = [
    {
        "name": "every",
        "expression": "object.spec.containers + object.spec.?initContainers.orValue([])"
        " + object.spec.?ephemeralContainers.orValue([])",
    },
    {"name": "isWindows", "expression": "object.spec.?os.?name.orValue('') == 'windows'"},
]

_OF_TEMPLATES: Final = frozenset(
    {"DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController"}
)
_OF_ANY: Final = [
    {
        "name": "podSpec",
        "expression": "object.kind == 'Pod' ? object.spec : object.kind == 'CronJob' ? "
        "object.spec.jobTemplate.spec.template.spec : object.spec.template.spec",
    },
    {
        "name": "podAnnotations",
        "expression": "(object.kind == 'Pod' ? object.?metadata : object.kind == 'CronJob' ? "
        "object.?spec.?jobTemplate.?metadata : object.?spec.?template.?metadata)"
        ".?annotations.orValue({})",
    },
]
"""Variables for a rule that names controllers itself; of a CronJob, Kyverno reads the annotations
of the Job."""

_CAPABILITIES: Final = (
    "['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', "
    "'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT']"
)
_SYSCTLS: Final = (
    "['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies', "
    "'net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start', "
    "'net.ipv4.ip_local_reserved_ports', 'net.ipv4.tcp_keepalive_time', "
    "'net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_keepalive_intvl', 'net.ipv4.tcp_keepalive_probes']"
)
_VOLUMES: Final = (
    "['name', 'configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', "
    "'persistentVolumeClaim', 'projected', 'secret']"
)
_SELINUX: Final = "['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']"


def _both(path: str, condition: str) -> str:
    """Returns a condition on a security context's field, of the Pod and of every container."""
    of_pod = condition.format(f"object.spec.?securityContext.{path}")
    of_each = condition.format(f"c.?securityContext.{path}")
    return f"({of_pod}) && variables.every.all(c, {of_each})"


_SELINUX_OF: Final = (
    "{0}.?type.orValue('') in " + _SELINUX + " && {0}.?user.orValue('') == ''"
    " && {0}.?role.orValue('') == ''"
)

BASELINE: Final = {
    "HostProcess": _both("?windowsOptions.?hostProcess", "!{}.orValue(false)"),
    "Host Namespaces": " && ".join(
        f"!object.spec.?{field}.orValue(false)" for field in ("hostNetwork", "hostPID", "hostIPC")
    ),
    "Privileged Containers": (
        "variables.every.all(c, !c.?securityContext.?privileged.orValue(false))"
    ),
    "Capabilities": (
        "variables.every.all(c, c.?securityContext.?capabilities.?add.orValue([])"
        f".all(one, one in {_CAPABILITIES}))"
    ),
    "HostPath Volumes": "!object.spec.?volumes.orValue([]).exists(v, has(v.hostPath))",
    "Host Ports": (
        "variables.every.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))"
    ),
    "AppArmor": (
        f"{_ANNOTATIONS}.all(key, value, "
        "!key.startsWith('container.apparmor.security.beta.kubernetes.io/') || "
        "value in ['', 'runtime/default'] || value.startsWith('localhost/')) && "
        + _both(
            "?appArmorProfile.?type",
            "{}.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost']",
        )
    ),
    "SELinux": _both("?seLinuxOptions", _SELINUX_OF),
    "/proc Mount Type": (
        "variables.every.all(c, c.?securityContext.?procMount.orValue('Default') == 'Default')"
    ),
    "Seccomp": _both(
        "?seccompProfile.?type", "{}.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost']"
    ),
    "Sysctls": (
        "object.spec.?securityContext.?sysctls.orValue([]).all(one, one.name in " + _SYSCTLS + ")"
    ),
}
"""The expressions of the baseline level, by the name of the control."""

_OF_PROFILE: Final = "in ['RuntimeDefault', 'Localhost']"

RESTRICTED: Final = {
    "Volume Types": (f"object.spec.?volumes.orValue([]).all(v, v.all(kind, kind in {_VOLUMES}))"),
    "Privilege Escalation": (
        "variables.isWindows || variables.every.all(c, "
        "c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false)"
    ),
    "Running as Non-root": (
        "variables.every.all(c, c.?securityContext.?runAsNonRoot"
        ".orValue(object.spec.?securityContext.?runAsNonRoot.orValue(false)))"
    ),
    "Running as Non-root user": _both("?runAsUser", "{}.orValue(1) != 0"),
    "Seccomp": (
        "variables.isWindows || variables.every.all(c, c.?securityContext.?seccompProfile.?type"
        ".orValue(object.spec.?securityContext.?seccompProfile.?type.orValue('Unconfined')) "
        f"{_OF_PROFILE})"
    ),
    "Capabilities": (
        "variables.isWindows || (variables.every.all(c, "
        "c.?securityContext.?capabilities.?drop.orValue([]).exists(one, one == 'ALL') && "
        "c.?securityContext.?capabilities.?add.orValue([])"
        ".all(one, one == 'NET_BIND_SERVICE')))"
    ),
}
"""The expressions that the restricted level adds to the baseline, or replaces."""


def security_spec(validations: list[Json], kinds: set[str]) -> Json:
    """Returns variables and validations for a rule about these kinds.

    Those for Pods alone are in the form that autogen rewrites. Raises
    :class:`~webhook.kyverno.patterns.Unwritable` for a kind in which Kyverno knows no Pod.
    """
    if kinds == {"Pod"}:
        return {"variables": _VARIABLES, "validations": validations}
    if others := sorted(kinds - _OF_TEMPLATES - {"Pod", "CronJob"}):
        raise Unwritable(f"validate.podSecurity: in a {others[0]} Kyverno finds no Pod")
    return {
        "variables": [*_OF_ANY, *map(_of_any, _VARIABLES)],
        "validations": list(map(_of_any, validations)),
    }


def _of_any(part: Json) -> Json:
    expression = part["expression"].replace(_ANNOTATIONS, "variables.podAnnotations")
    return {**part, "expression": expression.replace("object.spec", "variables.podSpec")}


def security_validations(given: Json, message: str) -> list[Json]:
    """Translates ``validate.podSecurity``; raises :class:`~webhook.kyverno.patterns.Unwritable`."""
    level, version = str(given.get("level")), str(given.get("version") or "latest")
    if level not in {"baseline", "restricted"}:
        raise Unwritable(f"validate.podSecurity.level {level}: it asks nothing")
    if version != "latest":
        raise Unwritable(f"validate.podSecurity.version {version}: latest alone is written here")
    controls = BASELINE if level == "baseline" else BASELINE | RESTRICTED
    left_out = set()
    for exclusion in objects_of(given.get("exclude")):
        if more := sorted(exclusion.keys() - {"controlName"}):
            raise Unwritable(f"validate.podSecurity.exclude.{more[0]}")
        left_out.add(str(exclusion.get("controlName")))
    return [
        {"expression": expression, "message": f"{message} ({name})" if message else name}
        for name, expression in controls.items()
        if name not in left_out
    ]
