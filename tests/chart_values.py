"""Each value of the chart in its default and in others, which of them go together, and what they do.

Two values that are each right may make a third do nothing, or make no sense together. ``TAKES_EFFECT``
says when a value does something, ``PERMITTED`` which sets of values there may be; the tests compare both
with what Helm renders, in both directions.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tests import chart_pages

Values = dict[str, Any]
"""By path."""

DEFAULTS: Values = {
    value.path: value.default
    for value in chart_pages.values((chart_pages.CHART / "values.yaml").read_text())
    if not value.is_group
}

_LIMITS = {"limits": {"memory": "701Mi"}}
_LABELS = {"team": "varied-team"}

OTHERS: dict[str, list[Any]] = {
    **{path: [not value] for path, value in DEFAULTS.items() if isinstance(value, bool)},
    "fullnameOverride": ["guard"],
    "nameOverride": ["watch"],
    "replicas": [5],
    "image.repository": ["registry.example/varied"],
    "image.tag": ["varied-tag"],
    "image.digest": [f"sha256:{'a' * 64}"],
    "image.pullPolicy": ["Always"],
    "image.pullSecrets": [[{"name": "varied-registry"}]],
    "operations": [["webhook"]],
    "defaultWaitForVAPBGeneration": [4711],
    "vapGenerationMode": ["constraint"],
    "shutdownDelaySeconds": [13],
    "shutdownGraceSeconds": [37],
    "exemptNamespaces": [["varied-exempt"]],
    "disabledBuiltins": [["http.send", "opa.runtime"]],
    "extraArgs": [["--log-level=DEBUG"]],
    "audit.replicas": [2],
    "audit.intervalSeconds": [4712],
    "audit.constraintViolationsLimit": [4713],
    "audit.chunkSize": [4714],
    "audit.extraArgs": [["--log-level=WARNING"]],
    "audit.resources": [_LIMITS],
    "mutation.failurePolicy": ["Fail"],
    "mutation.timeoutSeconds": [7],
    "mutation.reinvocationPolicy": ["IfNeeded"],
    "mutation.excludedNamespaces": [["varied-unmutated"]],
    "mutation.matchConditions": [[{"name": "varied-mutation", "expression": "true"}]],
    "telemetry.endpoint": ["grpc://varied-collector:4317", "http://varied-collector:4318"],
    "telemetry.metricInterval": ["19s"],
    "telemetry.samplesPerMillion": [4715],
    "console.allowHosts": [["varied-host.example"]],
    "console.oidc.issuerURL": ["https://varied-issuer.example"],
    "console.oidc.clientID": ["varied-client", "another-client"],
    "console.oidc.redirectURL": [f"https://varied-{n}.example/oidc/callback" for n in (1, 2)],
    "console.oidc.secret": ["varied-login"],
    "console.oidc.usernameClaim": ["varied-claim"],
    "console.oidc.usernamePrefix": ["varied-prefix"],
    "console.oidc.groupsClaim": ["varied-groups"],
    "console.oidc.groupsPrefix": ["varied-groups-prefix"],
    "console.oidc.sessionMinutes": [47],
    "console.extraArgs": [["--log-level=ERROR"]],
    "console.resources": [_LIMITS],
    "imageProvider.replicas": [3],
    "imageProvider.certificateSecret": ["varied-images-tls"],
    "imageProvider.caBundle": ["dmFyaWVk"],
    "imageProvider.keySecrets": [["varied-key"]],
    "imageProvider.registrySecrets": [["varied-pull"]],
    "imageProvider.extraArgs": [["--answer-within=1"]],
    "imageProvider.resources": [_LIMITS],
    "webhook.failurePolicy": ["Fail"],
    "webhook.timeoutSeconds": [11],
    "webhook.failClosedTimeoutSeconds": [12],
    "webhook.failClosedExcludedNamespaces": [["varied-network"], []],
    "webhook.checkIgnoreFailurePolicy": ["Ignore"],
    "webhook.rules": ["policies"],
    "webhook.operations": [["CREATE", "UPDATE", "DELETE"]],
    "kyverno.policies": ["audit", "enforce"],
    "webhook.excludedNamespaces": [["varied-excluded"]],
    "webhook.matchConditions": [[{"name": "varied-condition", "expression": "true"}]],
    "webhook.objectSelector": [{"matchLabels": {"varied": "selected"}}],
    "webhook.annotations": [{"varied.example/annotated": "yes-it-is"}],
    "certificates.existingSecret": ["varied-certificate"],
    "externalData.cacheTTL": ["97s"],
    "externalData.trust.namespace": ["varied-providers"],
    "externalData.trust.secret": ["varied-trust"],
    "networkPolicy.apiServers": [[{"ipBlock": {"cidr": "192.0.2.77/32"}}]],
    "resourceQuota.pods": [4716],
    "ports.admission": [18443],
    "ports.health": [19090],
    "ports.metrics": [18888],
    "dnsPolicy": ["Default"],
    "extraEnv": [[{"name": "VARIED", "value": "environment"}]],
    "extraVolumes": [[{"name": "varied-volume", "emptyDir": {}}]],
    "extraVolumeMounts": [[{"name": "varied-volume", "mountPath": "/varied"}]],
    "autoscaling.minReplicas": [4],
    "autoscaling.maxReplicas": [17],
    "autoscaling.averageCpu": ["617m"],
    "alerts.labels": [_LABELS],
    "podMonitor.interval": ["41s"],
    "podMonitor.labels": [_LABELS],
    "serviceMonitor.interval": ["43s"],
    "serviceMonitor.labels": [_LABELS],
    "dashboards.labels": [_LABELS],
    "decisions.mode": ["sidecar", "exporter"],
    "decisions.format": ["gatekeeper"],
    "decisions.server": [{"rules": [{"verdicts": ["allow"], "kinds": ["VariedKind"]}]}],
    "decisions.sinks": [[{"name": "varied-sink", "type": "stdout", "settings": {}}]],
    "decisions.sinksSecret": ["varied-sinks", ""],
    "decisions.queue.existingClaim": ["varied-queue"],
    "decisions.queue.storage": ["9Gi"],
    "decisions.queue.storageClassName": ["varied-class"],
    "decisions.queue.sizeLimit": ["3Gi"],
    "decisions.queue.maxBytes": [905306368],
    "decisions.queue.whenFull": ["dropOldest"],
    "decisions.auditReport.maxRuns": [19],
    "decisions.auditReport.existingClaim": ["varied-reports"],
    "decisions.auditReport.storage": ["11Gi"],
    "decisions.auditReport.storageClassName": ["varied-report-class"],
    "decisions.sidecarResources": [_LIMITS],
    "decisions.exporter.serverSecret": ["varied-server-tls"],
    "decisions.exporter.clientSecret": ["varied-client-tls"],
    "decisions.exporter.existingClaim": ["varied-exporter"],
    "decisions.exporter.storage": ["13Gi"],
    "decisions.exporter.storageClassName": ["varied-exporter-class"],
    "decisions.exporter.maxBytes": [8516192768],
    "decisions.exporter.resources": [_LIMITS],
    "priorityClassName": ["varied-priority"],
    "resources": [_LIMITS],
    "nodeSelector": [{"kubernetes.io/os": "linux", "varied": "node"}],
    "tolerations": [[{"operator": "Exists", "key": "varied-taint"}]],
    "topologySpreadConstraints": [
        [{"maxSkew": 1, "topologyKey": "varied-zone", "whenUnsatisfiable": "ScheduleAnyway"}]
    ],
    "podLabels": [_LABELS],
    "podAnnotations": [{"prometheus.io/scrape": "true", "varied": "annotation"}],
    "podSecurityContext": [
        {"runAsNonRoot": True, "runAsUser": 4717, "seccompProfile": {"type": "RuntimeDefault"}}
    ],
    "securityContext": [
        {
            "allowPrivilegeEscalation": False,
            "runAsUser": 4718,
            "capabilities": {"drop": ["ALL"]},
        }
    ],
    "affinity": [{"nodeAffinity": {}}],
}
"""Further valid values, by path."""

Predicate = Callable[[Values], Any]

_SIDECAR: Predicate = lambda v: v["decisions.mode"] == "sidecar"  # noqa: E731  # a table's row
_QUEUE: Predicate = lambda v: _SIDECAR(v) and v["decisions.queue.persistent"]  # noqa: E731
_EXPORTER: Predicate = lambda v: v["decisions.mode"] == "exporter"  # noqa: E731
_REPORT: Predicate = lambda v: v["decisions.auditReport.enabled"]  # noqa: E731
_CLOSES: Predicate = lambda v: (  # noqa: E731
    v["webhook.failClosed"] or v["webhook.failurePolicyByConstraint"]
)
_LOGIN: Predicate = lambda v: v["console.enabled"] and v["console.oidc.issuerURL"]  # noqa: E731

TAKES_EFFECT: dict[str, Predicate] = {
    "nameOverride": lambda v: not v["fullnameOverride"],
    "replicas": lambda v: not v["autoscaling.enabled"],
    "image.tag": lambda v: not v["image.digest"],
    "audit.": lambda v: v["audit.enabled"],
    "audit.enabled": lambda _: True,
    "audit.readEverything": lambda v: v["audit.enabled"] and v["rbac.create"],
    "mutation.": lambda v: v["mutation.enabled"],
    "mutation.enabled": lambda _: True,
    "telemetry.metricInterval": lambda v: v["telemetry.metrics"],
    "telemetry.samplesPerMillion": lambda v: v["telemetry.tracing"],
    "console.": lambda v: v["console.enabled"],
    "console.enabled": lambda _: True,
    "console.liveReview": lambda v: v["console.enabled"] and v["rbac.create"],
    "console.oidc.": _LOGIN,
    "console.oidc.issuerURL": lambda v: v["console.enabled"],
    "imageProvider.": lambda v: v["imageProvider.enabled"],
    "imageProvider.enabled": lambda _: True,
    "webhook.operations": lambda v: v["webhook.rules"] == "static" or v["webhook.failClosed"],
    "webhook.failClosedTimeoutSeconds": _CLOSES,
    "webhook.failClosedExcludedNamespaces": _CLOSES,
    "uninstallHook.enabled": lambda v: v["rbac.create"],
    "resourceQuota.pods": lambda v: v["resourceQuota.enabled"],
    "autoscaling.": lambda v: v["autoscaling.enabled"],
    "autoscaling.enabled": lambda _: True,
    "alerts.labels": lambda v: v["alerts.enabled"],
    "podMonitor.": lambda v: v["podMonitor.enabled"],
    "podMonitor.enabled": lambda _: True,
    "serviceMonitor.": lambda v: v["serviceMonitor.enabled"],
    "serviceMonitor.enabled": lambda _: True,
    "dashboards.labels": lambda v: v["dashboards.enabled"],
    "decisions.": lambda v: v["decisions.mode"],
    "externalData.trust.secret": lambda v: bool(v["externalData.trust.namespace"]),
    "decisions.mode": lambda _: True,
    "decisions.queue.persistent": _SIDECAR,
    "decisions.queue.maxBytes": _SIDECAR,
    "decisions.queue.sizeLimit": lambda v: _SIDECAR(v) and not v["decisions.queue.persistent"],
    "decisions.queue.existingClaim": _QUEUE,
    "decisions.queue.storage": lambda v: _QUEUE(v) and not v["decisions.queue.existingClaim"],
    "decisions.sidecarResources": _SIDECAR,
    "decisions.auditReport.": _REPORT,
    "decisions.auditReport.enabled": lambda _: True,
    "decisions.auditReport.storage": lambda v: (
        _REPORT(v) and not v["decisions.auditReport.existingClaim"]
    ),
    "decisions.exporter.": _EXPORTER,
    "decisions.exporter.storage": lambda v: (
        _EXPORTER(v) and not v["decisions.exporter.existingClaim"]
    ),
}
"""When a value changes what is rendered, by its path or, with a dot or as a beginning, by many;
the longest holds. Always where nothing is said."""


def takes_effect(path: str, values: Values) -> bool:
    """Whether the value does anything beside these others."""
    matching = [name for name in TAKES_EFFECT if path == name or path.startswith(name)]
    return not matching or bool(TAKES_EFFECT[max(matching, key=len)](values))


PERMITTED: list[tuple[Predicate, str]] = [
    (
        lambda v: not v["reports.admission"] or v["reports.audit"],
        "reports.admission needs reports.audit",
    ),
    (lambda v: not v["reports.audit"] or v["audit.enabled"], "reports.audit needs audit.enabled"),
    (
        lambda v: v["kyverno.policies"] != "audit" or v["audit.enabled"],
        "kyverno.policies=audit needs audit.enabled",
    ),
    (
        lambda v: not v["networkPolicy.apiServers"] or v["networkPolicy.enabled"],
        "networkPolicy.apiServers needs networkPolicy.enabled",
    ),
    (
        lambda v: not v["networkPolicy.apiServers"] or not v["hostNetwork"],
        "networkPolicy.apiServers is of no use with hostNetwork",
    ),
    (
        lambda v: not (v["externalData.trust.namespace"] and v["certificates.existingSecret"]),
        "externalData.trust needs Waddle's own certificate",
    ),
    (
        lambda v: (
            v["externalData.enabled"]
            or not (v["imageProvider.enabled"] or v["externalData.trust.namespace"])
        ),
        "imageProvider.enabled and externalData.trust need externalData.enabled",
    ),
    (
        lambda v: not v["console.oidc.clientID"] or v["console.oidc.issuerURL"],
        "console.oidc.clientID needs console.oidc.issuerURL",
    ),
    (
        lambda v: not _LOGIN(v) or v["console.oidc.clientID"],
        "console.oidc.clientID is needed with an issuer",
    ),
    (
        lambda v: not _LOGIN(v) or v["console.oidc.redirectURL"],
        "console.oidc.redirectURL is needed with an issuer",
    ),
    (
        lambda v: not v["telemetry.endpoint"] or v["telemetry.metrics"] or v["telemetry.tracing"],
        "telemetry.endpoint needs telemetry.metrics or telemetry.tracing",
    ),
    (
        lambda v: v["telemetry.endpoint"] or not (v["telemetry.metrics"] or v["telemetry.tracing"]),
        "telemetry.endpoint is needed",
    ),
    (
        lambda v: not _REPORT(v) or _SIDECAR(v),
        "decisions.auditReport needs decisions.mode=sidecar",
    ),
    (
        lambda v: not _REPORT(v) or v["audit.enabled"],
        "decisions.auditReport needs audit.enabled",
    ),
    (
        lambda v: not v["decisions.queue.persistent"] or _SIDECAR(v),
        "decisions.queue.persistent needs decisions.mode=sidecar",
    ),
    (
        lambda v: not (v["webhook.failurePolicyByConstraint"] and v["webhook.failClosed"]),
        "webhook.failurePolicyByConstraint and webhook.failClosed exclude each other",
    ),
    (
        lambda v: (
            not v["webhook.failurePolicyByConstraint"] or v["webhook.failurePolicy"] == "Ignore"
        ),
        "webhook.failurePolicyByConstraint and webhook.failurePolicy=Fail exclude each other",
    ),
]
"""Conditions on a set of values, each with Helm's message if it does not hold."""


def complaints(values: Values) -> list[str]:
    """Returns the messages about a set of values; Helm prints one of these."""
    return [words for holds, words in PERMITTED if not holds(values)]


def with_requirements(values: Values) -> Values:
    """The same with what is missing beside other values, and without what they do not permit."""
    v = dict(values)
    if not v["audit.enabled"]:
        v["reports.audit"] = v["decisions.auditReport.enabled"] = False
        v["kyverno.policies"] = v["kyverno.policies"].replace("audit", "enforce")
    if not v["reports.audit"]:
        v["reports.admission"] = False
    if v["hostNetwork"] or not v["networkPolicy.enabled"]:
        v["networkPolicy.apiServers"] = []
    if v["webhook.failurePolicyByConstraint"]:
        v["webhook.failClosed"], v["webhook.failurePolicy"] = False, "Ignore"
    if not v["externalData.enabled"]:
        v["imageProvider.enabled"] = False
    if v["certificates.existingSecret"] or not v["externalData.enabled"]:
        v["externalData.trust.namespace"] = ""
    # The API server refuses a mount without its volume.
    v["extraVolumeMounts"] = v["extraVolumeMounts"] if v["extraVolumes"] else []
    for path in ("console.oidc.clientID", "console.oidc.redirectURL"):
        v[path] = OTHERS[path][0] if v["console.oidc.issuerURL"] else ""
    sends = v["telemetry.metrics"] or v["telemetry.tracing"]
    v["telemetry.endpoint"] = OTHERS["telemetry.endpoint"][0] if sends else ""
    if not _SIDECAR(v):
        v["decisions.queue.persistent"] = v["decisions.auditReport.enabled"] = False
    return v


def rows() -> Iterator[Values]:
    """Sets of values in which each two occur in each of their four combinations.

    A value has a number. A bit of it says whether it is its default in the row of that bit, and in
    that row's opposite: two numbers differ in some bit. In the first two rows all are alike.
    """
    paths = list(DEFAULTS)
    bits: list[Callable[[int], bool]] = [
        lambda number, bit=bit, odd=odd: bool(number >> bit & 1) is odd  # type: ignore[misc]
        for bit in range(len(paths).bit_length())
        for odd in (True, False)
    ]
    for row, is_varied in enumerate([lambda _: False, lambda _: True, *bits]):
        values = {
            path: OTHERS[path][row % len(OTHERS[path])] if is_varied(number) else DEFAULTS[path]
            for number, path in enumerate(paths)
        }
        yield with_requirements(values)


ENABLED: Values = with_requirements(
    DEFAULTS
    | {
        path: True
        for path in DEFAULTS
        if path.endswith(".enabled") or path in {"telemetry.metrics", "telemetry.tracing"}
    }
    | {
        "reports.audit": True,
        "reports.admission": True,
        "webhook.failClosed": True,
        "decisions.mode": "sidecar",
        "console.oidc.issuerURL": OTHERS["console.oidc.issuerURL"][0],
    }
)
"""All parts, and everything else by default."""


def as_document(values: Values) -> dict[str, Any]:
    """A values.yaml."""
    root: dict[str, Any] = {}
    for path, value in values.items():
        *above, name = path.split(".")
        at = root
        for part in above:
            at = at.setdefault(part, {})
        # A mapping's default keys would stay: null removes a key.
        default = DEFAULTS[path]
        if isinstance(value, dict) and isinstance(default, dict):
            at[name] = {**dict.fromkeys(default.keys() - value.keys()), **value}
        else:
            at[name] = value
    return root
