"""Objects that make their reviews long, and ordinary ones that are large."""

from typing import Any

from tests.behaviour.serving import thing

Json = dict[str, Any]

GOOD: Json = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name: str, **fields: Any) -> Json:
    """One to which no policy objects."""
    image = "registry.example/app@sha256:" + "a" * 64
    resources = {
        "limits": {"cpu": "1", "memory": "64Mi"},
        "requests": {"cpu": "1", "memory": "64Mi"},
    }
    return {
        "name": name,
        "image": image,
        "securityContext": GOOD,
        "resources": resources,
        **fields,
    }


def pod(*containers: Json, init: list[Json] | None = None, namespace: str = "default") -> Json:
    """A Pod."""
    spec: Json = {"containers": list(containers)}
    if init is not None:
        spec["initContainers"] = init
    return {**thing("Pod", "web", namespace=namespace), "spec": spec}


def many_containers(count: int, *, privileged: bool = True, namespace: str = "default") -> Json:
    """A Pod of many small init containers, the first of them privileged."""
    init: list[Json] = [{"name": f"i{number}", "image": "b"} for number in range(count)]
    if privileged:
        init[0]["securityContext"] = {"privileged": True}
    return pod({"name": "a", "image": "b"}, init=init, namespace=namespace)


def many_capabilities(count: int) -> Json:
    """A privileged Pod whose list of capabilities repeats an entry."""
    added = {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"] * count}}
    return pod({"name": "a", "image": "b", "securityContext": added})


def ordinary() -> dict[str, Json]:
    """The largest objects that people have, none of which violates anything."""
    properties = {
        f"field{number}": {
            "type": "object",
            "description": "What this field is for, in as many words as an operator needs. " * 3,
            "properties": {
                name: {"type": "string", "description": "A setting of it."}
                for name in ("name", "namespace", "key", "mode", "path")
            },
        }
        for number in range(2_000)
    }
    definition = thing("CustomResourceDefinition", "widgets.example.com", "apiextensions.k8s.io/v1")
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    definition["spec"] = {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    data = {f"file{number}.conf": "key = value\n" * 850 for number in range(100)}
    config = {**thing("ConfigMap", "files", namespace="default"), "data": data}
    whole = pod(*(container(f"c{number}") for number in range(300)))
    return {"CRD of 1.2 MB": definition, "ConfigMap of 1 MB": config, "Pod of 300": whole}
