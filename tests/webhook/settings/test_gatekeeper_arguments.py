"""Gatekeeper's own arguments start a replica that follows its cluster."""

import pytest
import yaml

from tests.programs import ProgramUnavailableError, gatekeeper_sources
from webhook.settings.flags import InvalidFlag
from webhook.settings.reading import read

IN_A_POD = {
    "POD_NAME": "gatekeeper-controller-manager-x",
    "POD_NAMESPACE": "gatekeeper-system",
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
}

ARGUMENTS = (
    # deploy/gatekeeper.yaml of v3.23.1, which a test below compares with.
    (
        "--port=8443",
        "--logtostderr",
        "--exempt-namespace=gatekeeper-system",
        "--operation=webhook",
        "--operation=mutation-webhook",
        "--disable-opa-builtin={http.send}",
    ),
    (
        "--operation=audit",
        "--operation=status",
        "--operation=mutation-status",
        "--operation=generate",
        "--logtostderr",
        "--disable-opa-builtin={http.send}",
        "--disable-cert-rotation",
    ),
)

CHART = (
    # Arguments of the chart with its default values.
    "--health-addr=:9090",
    "--prometheus-port=8888",
    "--log-denies=false",
    "--emit-admission-events=false",
    "--admission-events-involved-namespace=false",
    "--log-level=INFO",
    "--enable-external-data=true",
    "--enable-generator-resource-expansion=true",
    "--log-mutations=false",
    "--mutation-annotations=false",
    "--disable-cert-rotation=false",
    "--max-serving-threads=-1",
    "--tls-min-version=1.3",
    "--validating-webhook-configuration-name=gatekeeper-validating-webhook-configuration",
    "--mutating-webhook-configuration-name=gatekeeper-mutating-webhook-configuration",
    "--external-data-provider-response-cache-ttl=3m",
    "--enable-k8s-native-validation=true",
    "--metrics-backend=prometheus",
    "--audit-interval=60",
    "--constraint-violations-limit=20",
    "--audit-from-cache=false",
    "--audit-chunk-size=500",
    "--audit-match-kind-only=false",
    "--emit-audit-events=false",
    "--audit-events-involved-namespace=false",
    "--default-create-vap-for-templates=false",
    "--default-create-vap-binding-for-constraints=false",
    "--default-wait-for-vapb-generation=30",
)


@pytest.mark.parametrize("arguments", [*ARGUMENTS, CHART, (*ARGUMENTS[0], *CHART)])
def test_gatekeeper_s_arguments_start_a_replica_that_follows_the_cluster(arguments):
    settings = read(arguments, IN_A_POD)
    assert settings.in_cluster


def test_what_is_asked_for_and_missing_is_reported():
    arguments = [item for item in ARGUMENTS[1] if item != "--operation=status"]
    notices = " ".join(read(arguments, IN_A_POD).notices)
    assert "mutation-status has no effect without status" in notices


def test_outside_of_a_pod_a_source_of_policies_must_be_named():
    environment = {**IN_A_POD}
    del environment["KUBERNETES_SERVICE_HOST"]
    with pytest.raises(InvalidFlag, match="no policies are given: add --policies"):
        read(ARGUMENTS[0], environment)


def test_events_of_admissions_are_asked_for_as_of_gatekeeper():
    settings = read(["--emit-admission-events", *ARGUMENTS[0]], IN_A_POD)
    assert settings.logging.emit_admission_events
    assert not settings.logging.admission_events_involved_namespace


def test_the_arguments_are_those_that_gatekeeper_ships(program):
    program("gatekeeper")
    try:
        manifest = gatekeeper_sources() / "deploy" / "gatekeeper.yaml"
    except ProgramUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    shipped = [
        tuple(container["args"])
        for document in yaml.safe_load_all(manifest.read_text())
        if document and document["kind"] == "Deployment"
        for container in document["spec"]["template"]["spec"]["containers"]
    ]
    assert sorted(shipped) == sorted(ARGUMENTS)
