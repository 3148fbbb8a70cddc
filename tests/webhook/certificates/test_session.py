"""Sources of the listener's certificate: the cluster's Secret or a directory."""

import datetime as dt
import json
import re
import subprocess
import sys

import pytest

from webhook.app.certificate_options import certificate_options, certificate_place
from webhook.certificates import pairs
from webhook.certificates.loader import CertificateLoader
from webhook.certificates.pairs import InvalidCertificate, self_signed
from webhook.certificates.session import ClusterCertificate
from webhook.log import Log, open_log
from webhook.metrics.exposition import Exposition
from webhook.metrics.registry import Registry
from webhook.metrics.server import CERT_NOT_AFTER
from webhook.settings.reading import read

ENVIRONMENT = {"POD_NAME": "p", "POD_NAMESPACE": "ns"}
NOW = dt.datetime.now(tz=dt.UTC)


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["--kubernetes"], True),
        (["--kubernetes", "--disable-cert-rotation"], False),
        (["--kubernetes", "--disable-cert-rotation=false"], True),
        (["--kubernetes", "--cert-dir=/certs"], False),
        (["--policies=/"], False),
    ],
)
def test_a_cluster_keeps_the_certificate_unless_somebody_else_does(arguments, kept):
    assert read(arguments, ENVIRONMENT).keeps_certificate is kept


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def log(tmp_path):
    return open_log(str(tmp_path / "log")).logger("certificate")


@pytest.fixture
def loader(registry, log):
    return CertificateLoader(
        certificate_options(read(["--kubernetes"], ENVIRONMENT)), registry, log
    )


def measured(registry):
    """When the certificate that is served ends, as the metrics say."""
    text = Exposition(registry).render()[0].decode()
    found = re.search(rf"^{CERT_NOT_AFTER.name} (\S+)$", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_readiness_waits_for_the_cluster(loader, log):
    assert loader.not_ready() == ""
    ClusterCertificate(certificate_place(read(["--kubernetes"], ENVIRONMENT)), loader, log)

    assert loader.not_ready() == "the certificate's Secret is not read yet"


def test_an_installed_pair_is_served_and_measured(loader, registry):
    pair = self_signed(["localhost"], NOW)
    loader.install(pair.certificate, pair.key)
    ends = pairs.not_after(pair.certificate)
    assert ends is not None

    assert measured(registry) == ends.timestamp()


def test_a_pair_that_does_not_fit_leaves_what_was_served(loader, registry):
    one, other = self_signed(["localhost"], NOW), self_signed(["localhost"], NOW)
    before = measured(registry)
    with pytest.raises(InvalidCertificate):
        loader.install(one.certificate, other.key)

    assert measured(registry) == before


def test_who_reads_that_a_certificate_was_installed_or_refused_finds_metrics_and_probes_so(
    tmp_path, registry
):
    found = []

    def state():
        return repr((registry.counters, registry.gauges, served.not_ready()))

    log = Log(lambda line: found.append((json.loads(line)["msg"], state()))).logger("certificate")
    options = certificate_options(read(["--kubernetes", f"--cert-dir={tmp_path}"], ENVIRONMENT))
    for number in (1, 2):
        pair = self_signed([f"name-{number}"], NOW + dt.timedelta(days=number))
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
        if number == 1:
            served = CertificateLoader(options, registry, log)
    assert served.load()
    assert found == [("certificate installed", state())]
    (tmp_path / "tls.key").write_bytes(b"none")
    assert not served.load()
    assert found[1:] == [("certificate cannot be used; the last good one stays", state())]


@pytest.mark.parametrize("module", ["process", "cluster"])
def test_a_process_that_makes_no_certificate_does_not_load_cryptography(module):
    code = f"import sys, webhook.app.{module}; print('cryptography' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout.strip() == "False"
