"""Gatekeeper's flags that ``waddle serve`` does not have (v3.23 and v3.24).

A value that matches Waddle's behaviour is accepted, so that Gatekeeper's manifests start unchanged.
Any other value is an error that names the replacement, because a switch without effect would
mislead.
"""

from __future__ import annotations

from typing import Final

from webhook.settings.flags import FALSE, TRUE, InvalidFlag
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class ForeignFlag:
    """A flag of Gatekeeper: its accepted values, and the replacement for others.

    With ``notice`` every value is accepted, and a notice gives the reason why it has no effect.
    """

    boolean: bool
    replacement: str
    harmless: frozenset[str] = frozenset()
    notice: bool = False


def _switch(replacement: str, *, harmless: frozenset[str] = FALSE) -> ForeignFlag:
    return ForeignFlag(boolean=True, replacement=replacement, harmless=harmless)


def _value(replacement: str, *harmless: str) -> ForeignFlag:
    return ForeignFlag(boolean=False, replacement=replacement, harmless=frozenset(harmless))


def _ignored(reason: str) -> ForeignFlag:
    return ForeignFlag(boolean=False, replacement=reason, notice=True)


_EITHER: Final = TRUE | FALSE
_AUDIT_STATISTICS = "use the histogram gatekeeper_audit_duration_seconds at /metrics"
_EXPORT = (
    "use --decision-log-config: a sidecar exports every decision (docs/decisions.md), if "
    "a sink needs it in the form of Gatekeeper's export"
)
_MUTATION = "add mutation-webhook to --operation"
_STACKDRIVER = "scrape /metrics (--prometheus-port) with Google Cloud Managed Prometheus"
_STATISTICS = "use the histogram gatekeeper_validation_request_duration_seconds at /metrics"
_ROTATION = (
    "one configuration gets the CA bundle (--validating-webhook-configuration-name). For "
    "others use cert-manager: mount its Secret as --cert-dir, and let it write their CA "
    "bundles"
)
_CLUSTER = "use --kubeconfig: it names the API server"

FLAGS: Final[dict[str, ForeignFlag]] = {
    "additional-mutating-webhook-configs-to-rotate-certs": _value(_ROTATION, ""),
    "additional-validating-webhook-configs-to-rotate-certs": _value(_ROTATION, ""),
    "api-cache-dir": _ignored("the audit keeps no list on disk"),
    "audit-channel": _ignored(_EXPORT),
    "audit-connection": _ignored(_EXPORT),
    "audit-match-kind-only": _switch(
        "the audit only lists kinds that a constraint can match", harmless=_EITHER
    ),
    "client-cert-name": _value("use --client-ca-name and --client-cn-name", ""),
    "debug-use-fake-pod": _switch("POD_NAME and POD_NAMESPACE may be absent"),
    "enable-admission-violation-export": _switch(_EXPORT),
    "enable-mutation": _switch(_MUTATION, harmless=_EITHER),
    "enable-referential-rules": _switch(
        "Config, SyncSets and --policies decide what is in data.inventory: leave the kind "
        "out there",
        harmless=TRUE,
    ),
    "enable-remote-cluster": _switch(_CLUSTER),
    "enable-tls-healthcheck": _switch(
        "/readyz always checks that the certificate is loaded and valid"
    ),
    "enable-violation-export": _switch(_EXPORT),
    "log-stats-admission": _switch(_STATISTICS),
    "log-stats-audit": _switch(_AUDIT_STATISTICS),
    "logtostderr": _switch(
        "the log goes to standard error unless --log-file is set", harmless=_EITHER
    ),
    "alsologtostderr": _switch("the log goes to one place, standard error or --log-file"),
    "metrics-addr": _value("use --prometheus-host and --prometheus-port", "0"),
    "stackdriver-metric-interval": _ignored(_STACKDRIVER),
    "stackdriver-only-when-available": _switch(_STACKDRIVER),
    "v": _ignored("use --log-level"),
    "vmodule": _ignored("use --log-level"),
}


class Foreign:
    """Handles Gatekeeper's flags without meaning in Waddle; :attr:`notices` lists ignored ones."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def __call__(self, name: str, value: str | None) -> bool:
        """Accepts a flag; returns True if its value is the next argument.

        Raises :class:`~webhook.settings.flags.InvalidFlag`.
        """
        flag = FLAGS.get(name)
        if flag is None:
            raise InvalidFlag(f"flag provided but not defined: --{name}")
        if value is None:
            if not flag.boolean:
                return True
            value = "true"
        if flag.notice:
            self.notices.append(f"--{name} has no effect: {flag.replacement}")
        elif value not in flag.harmless:
            raise InvalidFlag(f"Gatekeeper's flag --{name}={value}: {flag.replacement}")
        return False
