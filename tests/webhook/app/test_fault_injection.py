"""A fault is injected where a test asks for it in full, and nowhere else."""

import pytest

from webhook.app.fault_injection import (
    BLAME_NOBODY,
    VARIABLE,
    FaultRefused,
    RefusingDriver,
    blames_nobody,
    refused_kind,
)
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import CompileError
from webhook.constraint.template import Code, Template
from webhook.settings.reading import read

POD = {"POD_NAME": "waddle-1", "POD_NAMESPACE": "waddle-system"}
WHOLE = "refuse-template:K8sAlways:waddle-1"


def settings(*flags):
    return read([f"--kubeconfig={__file__}", *flags], POD)


def test_without_the_variable_nothing_is_refused():
    assert refused_kind(settings(), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == ""


def test_a_test_s_process_refuses_the_kind_that_it_is_reported():
    assert refused_kind(settings(), {VARIABLE: WHOLE}) == "K8sAlways"


@pytest.mark.parametrize(
    "environment",
    [
        {VARIABLE: ""},
        {VARIABLE: "1"},
        {VARIABLE: "refuse-template:K8sAlways"},
        {VARIABLE: "refuse-template::waddle-1"},
        {VARIABLE: "refuse-template:K8sAlways:waddle-2"},
        {VARIABLE: WHOLE, "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
    ],
)
def test_anything_less_ends_the_start(environment):
    """Another Pod's name (a Deployment's environment is every Pod's), or a Pod at all."""
    with pytest.raises(FaultRefused, match=VARIABLE):
        refused_kind(settings(), environment)


def test_no_process_with_the_account_of_its_pod_injects_a_fault():
    in_cluster = read(["--kubernetes"], POD)
    with pytest.raises(FaultRefused):
        refused_kind(in_cluster, {VARIABLE: WHOLE})


def test_the_driver_refuses_the_one_kind():
    driver = RefusingDriver(RegoDriver(), "K8sAlways")
    code = Code("Rego", {"rego": "package a\nviolation[{}] { false }", "version": "", "libs": []})
    target = "admission.k8s.gatekeeper.sh"
    assert driver.name == "Rego"
    with pytest.raises(CompileError, match=VARIABLE):
        driver.compile(Template("k8salways", "K8sAlways", target, (code,)), code)
    assert driver.compile(Template("other", "Other", target, (code,)), code) is not None


def test_only_a_process_that_no_cluster_reaches_blames_nobody():
    alone = read([f"--policies={__file__}", "--host=127.0.0.1"], {})
    reachable = read([f"--policies={__file__}", "--host=0.0.0.0"], {})
    faulty = {VARIABLE: BLAME_NOBODY}
    assert blames_nobody(alone, faulty)
    assert refused_kind(alone, faulty) == ""
    assert not blames_nobody(alone, {})
    for settings_, environment in (
        (reachable, faulty),
        (alone, {**faulty, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}),
    ):
        assert not blames_nobody(settings_, environment)
        with pytest.raises(FaultRefused):
            refused_kind(settings_, environment)
