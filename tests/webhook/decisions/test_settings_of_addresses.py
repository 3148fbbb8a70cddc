"""Addresses in configuration files, and other settings that fit no other: refused with their place."""

from typing import Any

import pytest

from webhook.decisions.configuration import InvalidConfiguration, Section
from webhook.decisions.exporter import settings as exporter
from webhook.decisions.sidecar import settings as sidecar


def of_sidecar(**given: Any) -> dict[str, Any]:
    """A configuration that is well, but for what is given."""
    sink = {"name": "a", "type": "stdout"}
    return {
        "listen": [{"url": "unix:///s"}],
        "queue": {"directory": "/q"},
        "sinks": [sink],
        **given,
    }


def posting(url: str) -> dict[str, Any]:
    """With a sink that posts to an address."""
    return of_sidecar(sinks=[{"name": "a", "type": "http", "settings": {"url": url}}])


def listening(url: str, **tls: str) -> dict[str, Any]:
    """With one address."""
    return of_sidecar(listen=[{"url": url, "tls": tls}])


LISTEN = "expected unix:///path or grpc://host:port"
POST = "expected http://… or https://…"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (listening("grpc://h:x"), "f.listen[0].url: no address: Port could not be cast"),
        (listening("grpc://h:99999"), "f.listen[0].url: no address: Port out of range"),
        (listening("grpc://[::1"), "f.listen[0].url: no address: Invalid IPv6 URL"),
        (listening("grpc://h"), f"f.listen[0].url: {LISTEN}"),
        (listening("unix://s"), f"f.listen[0].url: {LISTEN}"),
        (listening("unix:///s", caFile="x"), "f.listen[0].tls: unknown key caFile"),
        (listening("unix:///s", certFile="x"), "f.listen[0].tls: is for grpc:// only"),
        (listening("grpc://h:1", keyFile="x"), "f.listen[0].tls: certFile and keyFile go together"),
        (
            listening("grpc://h:1", clientCAFile="x"),
            "f.listen[0].tls: clientCAFile needs certFile and keyFile",
        ),
        (of_sidecar(listen=[]), "f.listen: expected at least one address"),
        (of_sidecar(sinks=[]), "f.sinks: expected at least one sink"),
        (of_sidecar(sinks={}), "f.sinks: expected a list"),
        (of_sidecar(sinks=[1]), "f.sinks[0]: expected a mapping"),
        (posting("http://h:x"), "f.sinks[0].settings.url: no address: Port could not be cast"),
        (posting("http://h:99999"), "f.sinks[0].settings.url: no address: Port out of range"),
        (posting("http://[::1"), "f.sinks[0].settings.url: no address: Invalid IPv6 URL"),
        (posting("https://"), f"f.sinks[0].settings.url: {POST}"),
        (posting("ftp://h"), f"f.sinks[0].settings.url: {POST}"),
        (
            of_sidecar(sinks=[{"name": "a/b", "type": "stdout"}]),
            "f.sinks[0].name: expected letters, digits, - and _, at most 63",
        ),
        (
            of_sidecar(sinks=[{"name": "a", "type": "stdout"}] * 2),
            "f.sinks: two sinks have the same name",
        ),
        (
            of_sidecar(queue={"directory": "/q", "segmentBytes": 2**30, "maxBytes": 2**31}),
            "f.queue.maxBytes: must be at least four times segmentBytes",
        ),
        (
            of_sidecar(sinks=[{"name": "a", "type": "kafka", "settings": {"topic": "t"}}]),
            "f.sinks[0].settings.brokers: expected at least one host:port",
        ),
        (
            of_sidecar(
                sinks=[
                    {
                        "name": "a",
                        "type": "kafka",
                        "settings": {
                            "topic": "t",
                            "brokers": ["b:1"],
                            "options": {"linger.ms": "0"},
                        },
                    }
                ]
            ),
            "f.sinks[0].settings.options: linger.ms is set by the sink itself",
        ),
    ],
)
def test_a_sidecar_that_cannot_work_is_refused_by_the_setting(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        sidecar.read_settings(Section(given, "f"))
    assert str(refused.value).startswith(message)


SEND = "f.sidecarURL: expected unix:///path or grpc://host:port"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sidecarURL": "grpc://h:x"}, "f.sidecarURL: no address: Port could not be cast"),
        ({"sidecarURL": "grpc://[::1"}, "f.sidecarURL: no address: Invalid IPv6 URL"),
        ({"sidecarURL": "grpc://h"}, SEND),
        ({"sidecarURL": "grpc:///h"}, SEND),
        ({"sidecarURL": "unix://run/s"}, SEND),
        ({"sidecarURL": "unix:"}, SEND),
        ({"sidecarURL": "unix:///s?colour=blue"}, "f.sidecarURL: the only parameter is ack="),
        (
            {"sidecarURL": "unix:///s", "maxRecordBytes": 2**20},
            "f.maxRecordBytes: the protocol's longest line is 1 MiB",
        ),
        ({"sidecarURL": "unix:///s", "mask": "a.b"}, "f.mask: expected a list of strings"),
        ({"sidecarURL": "unix:///s", "mask": [""]}, "f.mask: an empty path"),
        (
            {"sidecarURL": "unix:///s", "labels": {"a": 1}},
            "f.labels: expected a mapping of strings",
        ),
        (
            {"sidecarURL": "unix:///s", "maskKinds": [{"kinds": ["A"]}]},
            "f.maskKinds[0].paths: expected a list with at least one path",
        ),
    ],
)
def test_an_exporter_that_cannot_work_is_refused_by_the_setting(
    given: dict[str, Any], message: str
) -> None:
    """An address without a path or a port was tried for ever, or a URL ended in a traceback."""
    with pytest.raises(InvalidConfiguration) as refused:
        exporter.read_settings(Section(given, "f"))
    assert str(refused.value).startswith(message)
