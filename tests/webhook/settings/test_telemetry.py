"""The flags of what is sent to a collector."""

from pathlib import Path

import pytest

from webhook.settings.flags import InvalidFlag
from webhook.settings.reading import read
from webhook.settings.telemetry import OTLPEndpoint, read_endpoint

POLICIES = f"--policies={Path(__file__).parent}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("collector:4318", ("http", "collector", 4318, "")),
        ("collector", ("http", "collector", 4318, "")),
        ("http://collector/otlp", ("http", "collector", 4318, "/otlp")),
        ("https://[::1]:9", ("https", "::1", 9, "")),
        ("grpc://collector", ("grpc", "collector", 4317, "")),
        ("grpcs://collector:443", ("grpcs", "collector", 443, "")),
    ],
)
def test_an_endpoint_is_a_url_or_a_host_as_gatekeeper_has_it(text, found):
    assert read_endpoint(text) == OTLPEndpoint(*found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--otlp-endpoint=ftp://x"], "--otlp-endpoint"),
        (["--otlp-endpoint=grpc://"], "--otlp-endpoint"),
        (["--otlp-endpoint=http://user@x"], "--otlp-endpoint"),
        (["--otlp-endpoint=x:99999"], "--otlp-endpoint"),
        (["--otlp-endpoint=grpc://x/path"], "gRPC has no path"),
        (["--enable-tracing"], "--enable-tracing needs --otlp-endpoint"),
        (["--metrics-backend=opentelemetry"], "needs --otlp-endpoint"),
        (["--metrics-backend=stackdriver"], "want prometheus or opentelemetry"),
        (["--otlp-metric-interval=10ms"], "--otlp-metric-interval must be at least 1"),
        (["--trace-samples-per-million=1000001"], "--trace-samples-per-million"),
        (["--otlp-ca-file=/no/such/file"], "--otlp-ca-file: no such file"),
    ],
)
def test_what_makes_no_sense_is_named(arguments, message):
    with pytest.raises(InvalidFlag) as found:
        read([POLICIES, *arguments], {})
    assert message in str(found.value)


def test_gatekeeper_s_own_flags_send_metrics():
    flags = ["--metrics-backend=prometheus", "--metrics-backend=opentelemetry"]
    found = read([POLICIES, *flags, "--otlp-endpoint=collector:4318"], {})
    assert found.telemetry.sends_metrics
    assert not found.telemetry.enable_tracing
