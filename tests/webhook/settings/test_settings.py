"""Flags in Go's syntax, and what Gatekeeper's other flags become."""

from pathlib import Path

import pytest

from webhook.cli.pages.documents import PAGES
from webhook.duration import duration_seconds
from webhook.settings.flags import (
    InvalidFlag,
    flags_of,
    read_duration,
    show_default,
    usage,
)
from webhook.settings.gatekeeper import FLAGS
from webhook.settings.reading import read
from webhook.settings.serve import ServeSettings
from webhook.settings.serve_checks import address

DOCUMENTS = Path(__file__).parents[3] / "docs"
POLICIES = f"--policies={Path(__file__).parent}"


def settings(*arguments: str) -> ServeSettings:
    """The settings of a command line that names policies."""
    return read([POLICIES, *arguments], {})


@pytest.mark.parametrize(
    "arguments",
    [["-port=1"], ["--port=1"], ["-port", "1"], ["--port", "1"], ["--port=2", "--port=1"]],
)
def test_one_and_two_dashes_and_both_forms_of_a_value_mean_the_same(arguments: list[str]) -> None:
    assert settings(*arguments).serving.port == 1


def test_a_default_is_shown_as_a_reader_would_type_it() -> None:
    shown = {item.name: show_default(item) for item in flags_of(ServeSettings)}
    assert shown["exceptions-keep"] == "2160h"
    assert shown["evaluation-budget"] == "0.1s"
    for item in flags_of(ServeSettings):
        if item.kind == "duration":
            assert "e+" not in shown[item.name]
            assert read_duration(item.name, shown[item.name]) == item.default


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "TRUE", "True"])
def test_go_s_words_for_true_are_true(text: str) -> None:
    assert settings(f"--log-denies={text}").logging.log_denies is True


@pytest.mark.parametrize("text", ["0", "f", "F", "false", "FALSE", "False"])
def test_go_s_words_for_false_are_false(text: str) -> None:
    assert settings("--log-denies", f"--log-denies={text}").logging.log_denies is False


def test_a_boolean_takes_no_value_from_the_next_argument() -> None:
    with pytest.raises(InvalidFlag, match="unexpected argument 'false'"):
        settings("--log-denies", "false")


def test_lists_are_repeated_separated_by_commas_or_both() -> None:
    found = settings("--exempt-namespace=a,b", "--exempt-namespace", "c")
    assert found.deciding.exempt_namespace == ("a", "b", "c")


def test_naming_an_operation_replaces_the_default() -> None:
    assert settings().policies.operation == ("webhook",)
    assert settings("--operation=audit,webhook").policies.operation == ("audit", "webhook")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--log-denies=yes", "invalid boolean value 'yes' for flag --log-denies"),
        ("--port=1_0", "not an integer"),
        ("--port=65536", "--port must be between 0 and 65535, got 65536"),
        ("--port=-1", "--port must be between 0 and 65535, got -1"),
        ("--port", "flag needs an argument: --port"),
        ("--port=", "not an integer"),
        ("--idle-timeout=5", "invalid duration '5' for flag --idle-timeout"),
        ("--idle-timeout=0s", "--idle-timeout must be at least 0.05"),
        ("--max-in-flight=0", "--max-in-flight must be at least 1"),
        ("--tls-min-version=1.1", "want 1.2 or 1.3"),
        ("--log-level=TRACE", "want DEBUG, INFO, WARNING or ERROR"),
        ("--health-addr=9090", "want host:port or :port"),
        ("--health-addr=:x", "want host:port or :port"),
        ("---port=1", "bad flag syntax"),
        ("--=1", "bad flag syntax"),
        ("-", "unexpected argument"),
        ("--", "unexpected argument"),
        ("serve", "unexpected argument"),
        ("--prot=1", "flag provided but not defined: --prot"),
        ("--constraint-violations-limit=-1", "--constraint-violations-limit must be at least 0"),
        ("--api-cache-dir", ""),
    ],
)
def test_what_cannot_be_read_is_named(argument: str, message: str) -> None:
    if message:
        with pytest.raises(InvalidFlag) as found:
            settings(argument)
        assert message in str(found.value)
    else:
        assert settings(argument) == settings()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3s", 3),
        ("1m0s", 60),
        ("1h2m3.5s", 3723.5),
        ("500ms", 0.5),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        (".5s", 0.5),
        ("1.s", 1),
        ("0", 0),
        ("", None),
        ("1", None),
        ("s", None),
        ("1d", None),
        ("1s2", None),
        ("1 s", None),
        ("٣s", None),
        ("-1s", None),
    ],
)
def test_durations_are_go_s(text: str, seconds: float | None) -> None:
    assert duration_seconds(text) == (None if seconds is None else pytest.approx(seconds))


def test_the_environment_names_the_pod() -> None:
    found = read([POLICIES], {"POD_NAME": "a", "POD_NAMESPACE": "b", "OTHER": "c"})
    assert (found.pod.name, found.pod.namespace) == ("a", "b")


POD = {"POD_NAME": "a", "POD_NAMESPACE": "b"}


@pytest.mark.parametrize("flag", ["--kubernetes", f"--kubeconfig={__file__}"])
def test_a_cluster_is_a_source_of_policies_like_a_directory(flag: str) -> None:
    found = read([flag, "--operation=webhook,status,generate"], {**POD, "POD_UID": "c"})
    assert found.in_cluster
    assert found.pod.uid == "c"
    assert found.notices == ()
    assert not settings().in_cluster


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--kubernetes", POLICIES], POD, "exclude each other"),
        (["--kubernetes"], {"POD_NAME": "a"}, "needs POD_NAME and POD_NAMESPACE"),
        (["--kubernetes"], {"POD_NAMESPACE": "a"}, "needs POD_NAME and POD_NAMESPACE"),
        (["--kubeconfig=/no/such/file"], POD, "--kubeconfig: no such file"),
        ([], POD, "or --kubernetes"),
    ],
)
def test_a_cluster_needs_its_pod_and_no_directory(
    arguments: list[str], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidFlag) as found:
        read(arguments, environment)
    assert message in str(found.value)


def test_rules_that_follow_policies_need_a_cluster() -> None:
    with pytest.raises(InvalidFlag, match="it needs --kubernetes"):
        read(["--webhook-rules=policies", "--policies=."], POD)
    enforced = ["--webhook-rules=policies", "--kubernetes", "--kyverno-policies=enforce"]
    assert read(enforced, POD).policies.webhook_rules == "policies"


def test_operations_that_write_to_a_cluster_are_called_idle_without_one() -> None:
    (notice,) = settings("--operation=webhook,status,generate").notices
    assert notice == "--operation=generate,status has no effect without --kubernetes"


@pytest.mark.parametrize(
    ("requested", "carried_out"),
    [
        ("webhook", ("webhook",)),
        ("webhook,mutation-status", ("webhook",)),
        ("webhook,mutation-status,status", ("mutation-status", "status", "webhook")),
        ("webhook,mutation-controller", ("mutation-controller", "webhook")),
        ("generate,webhook,webhook", ("generate", "webhook")),
    ],
)
def test_a_status_claims_the_operations_that_are_carried_out_and_no_others(
    requested: str, carried_out: tuple[str, ...]
) -> None:
    found = read(["--kubernetes", f"--operation={requested}"], POD)
    assert found.operations_carried_out == carried_out


def test_without_a_cluster_no_operation_of_one_is_carried_out() -> None:
    assert settings("--operation=webhook,status,generate").operations_carried_out == ("webhook",)


def test_flags_of_the_audit_are_called_idle_without_it() -> None:
    (notice,) = settings("--audit-interval=30", "--audit-chunk-size=500").notices
    assert notice == "--audit-interval has no effect without --kubernetes and --operation=audit"
    found = read(["--kubernetes", "--operation=audit", "--audit-interval=30"], POD)
    assert found.notices == ()
    assert found.audits
    assert not found.serves_admission


@pytest.mark.parametrize("operation", ["status,generate", "mutation-status,mutation-controller"])
def test_a_process_that_would_decide_nothing_is_refused(operation: str) -> None:
    with pytest.raises(InvalidFlag, match="decides nothing"):
        read(["--kubernetes", f"--operation={operation}"], POD)


@pytest.mark.parametrize("name", FLAGS)
def test_every_other_flag_of_gatekeeper_is_accepted_warned_of_or_refused_with_a_remedy(
    name: str,
) -> None:
    flag = FLAGS[name]
    for value in flag.harmless:
        assert settings(f"--{name}={value}").notices == ()
    if flag.notice:
        assert settings(f"--{name}=value").notices == (
            f"--{name} has no effect: {flag.replacement}",
        )
    elif "true" not in flag.harmless or not flag.boolean:
        with pytest.raises(InvalidFlag) as found:
            settings(f"--{name}=true")
        assert flag.replacement in str(found.value)


def test_a_foreign_flag_s_value_may_be_the_next_argument() -> None:
    found = settings("--api-cache-dir", "/some/where", "--port=1")
    assert found.serving.port == 1
    assert len(found.notices) == 1


def test_no_flag_is_declared_and_foreign_at_once() -> None:
    assert {flag.name for flag in flags_of(ServeSettings)}.isdisjoint(FLAGS)


def test_every_flag_of_gatekeeper_s_reference_is_known() -> None:
    """The 60 flags of runtime-flags.md, and those that its code adds."""
    known = FLAGS.keys() | {flag.name for flag in flags_of(ServeSettings)}
    documented = """
        log-file log-level log-level-key log-level-encoder health-addr metrics-addr port host
        cert-dir disable-cert-rotation enable-pprof pprof-port cert-service-name
        enable-tls-healthcheck enable-k8s-native-validation
        external-data-provider-response-cache-ttl enable-referential-rules shutdown-delay
        disable-opa-builtin exempt-namespace exempt-namespace-prefix exempt-namespace-suffix
        max-serving-threads disable-enforcementaction-validation log-denies emit-admission-events
        admission-events-involved-namespace log-stats-admission
        validating-webhook-configuration-name mutating-webhook-configuration-name
        additional-validating-webhook-configs-to-rotate-certs
        additional-mutating-webhook-configs-to-rotate-certs tls-min-version client-ca-name
        client-cn-name readiness-retries prometheus-port stackdriver-only-when-available
        stackdriver-metric-interval otlp-endpoint otlp-metric-interval metrics-backend
        enable-mutation log-mutations mutation-annotations enable-violation-export
        audit-connection audit-channel audit-interval constraint-violations-limit
        audit-chunk-size audit-from-cache emit-audit-events audit-events-involved-namespace
        audit-match-kind-only api-cache-dir log-stats-audit enable-external-data
        sync-vap-enforcement-scope operation default-create-vap-binding-for-constraints
        default-create-vap-for-templates default-wait-for-vapb-generation
        default-k8s-native-validation-failure-policy debug-use-fake-pod enable-remote-cluster
        enable-generator-resource-expansion kubeconfig logtostderr
        enable-admission-violation-export
    """
    assert set(documented.split()) - known == set()


def test_addresses_are_go_s() -> None:
    assert address(":9090", "health-addr") == ("", 9090)
    assert address("127.0.0.1:1", "health-addr") == ("127.0.0.1", 1)
    assert address("[::1]:1", "health-addr") == ("::1", 1)


def test_the_help_names_every_flag_and_fits_a_terminal() -> None:
    text = usage(ServeSettings)
    assert all(f"--{flag.name}" in text for flag in flags_of(ServeSettings))
    explanations = [line for line in text.splitlines() if line.startswith("        ")]
    assert max(map(len, explanations)) <= 100


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_the_declarations_say(name: str) -> None:
    """Otherwise run ``python -m webhook.cli.pages.documents``."""
    assert (DOCUMENTS / name).read_text() == PAGES[name]()
