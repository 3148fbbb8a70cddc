"""The ServiceMonitor, as Prometheus reads it: each container that has metrics, and no other port."""

import pytest

from tests.manifests import NAMESPACE, Object, Objects, helmed, pod_of, with_components

MONITORS = {
    "sidecar": (
        ("components/service-monitor", "decisions/sidecar"),
        {"metrics": 2, "decisions": 2},
    ),
    "exporter": (
        ("components/service-monitor", "decisions/exporter"),
        {"metrics": 2, "decisions": 1},
    ),
    "neither": (("components/service-monitor",), {"metrics": 2}),
    "images": (("components/service-monitor", "components/image-provider"), {"metrics": 3}),
}
VALUES = {
    "neither": [],
    "images": ["--set", "imageProvider.enabled=true"],
    **{mode: ["--set", f"decisions.mode={mode}"] for mode in ("sidecar", "exporter")},
}


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("form", ["kustomize", "helm"])
@pytest.mark.parametrize("mode", MONITORS)
def test_a_service_monitor_has_each_container_scraped_that_has_metrics(tmp_path, form, mode):
    """Sidecars and the exporter, too, and no port that nothing listens at."""
    components, expected = MONITORS[mode]
    objects = (
        with_components(tmp_path, *components)
        if form == "kustomize"
        else helmed("--set", "serviceMonitor.enabled=true", *VALUES[mode])
    )

    assert scraped(objects) == expected


def scraped(objects: Objects) -> dict[str, int]:
    """How many Deployments' containers each endpoint of the ServiceMonitor asks, by its port.

    As Prometheus does: the Services with the label, of each the port with the name, of that the
    Pods that the Service selects.
    """
    monitor = objects["ServiceMonitor", NAMESPACE, "waddle"]["spec"]
    labels = monitor["selector"]["matchLabels"].items()
    pods = [pod_of(objects, name) for kind, _, name in objects if kind == "Deployment"]
    found: dict[str, int] = {}
    for endpoint in monitor["endpoints"]:
        for (kind, _, _), service in objects.items():
            if kind != "Service" or not labels <= service["metadata"]["labels"].items():
                continue
            for port in service["spec"]["ports"]:
                if port["name"] != endpoint["port"]:
                    continue
                selected = service["spec"]["selector"].items()
                for pod in pods:
                    if selected <= pod["metadata"]["labels"].items():
                        assert port["targetPort"] in listened(pod), (port, pod["metadata"])
                        found[port["name"]] = found.get(port["name"], 0) + 1
    return found


def listened(pod: Object) -> set[str | int]:
    """The ports of a Pod's containers by name and number; of a sidecar by number alone."""
    ports = {
        key
        for container in pod["spec"]["containers"]
        for port in container["ports"]
        for key in (port["name"], port["containerPort"])
    }
    sidecars = pod["spec"].get("initContainers") or ()
    return ports | {port["containerPort"] for item in sidecars for port in item["ports"]}
