package lib.pods

# The pod that the object under review is or makes: its spec, its metadata and where its spec stands.
# Undefined for a deletion, and for an update that leaves the pod's spec as it was: a cluster must be
# able to remove, label and annotate what was there before the policy. An object that is being deleted
# is judged like any other, because it works on while it has a finalizer.
pod := made if {
  not leaving
  made := pod_of(input.review.object)
  not unchanged(made)
}

leaving if input.review.operation == "DELETE"

unchanged(made) if {
  input.review.operation == "UPDATE"
  pod_of(input.review.oldObject).spec == made.spec
}

makers := {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}

pod_of(resource) := part(resource, "spec") if resource.kind == "Pod"

pod_of(resource) := part(resource.spec.template, "spec.template.spec") if resource.kind in makers

pod_of(resource) := part(resource.spec.jobTemplate.spec.template, "spec.jobTemplate.spec.template.spec") if {
  resource.kind == "CronJob"
}

pod_of(resource) := part(resource.template, "template.spec") if resource.kind == "PodTemplate"

part(template, field) := {
  "spec": template.spec,
  "metadata": object.get(template, "metadata", {}),
  "field": field,
}

# Its containers of every kind, without those whose image the constraint exempts.
containers := [found |
  some group in ["initContainers", "containers", "ephemeralContainers"]
  some index, container in pod.spec[group]
  not exempt(object.get(container, "image", ""))
  found := {"spec": container, "group": group, "index": index}
]

exempt(image) if {
  some pattern in input.parameters.exemptImages
  matches(image, pattern)
}

matches(image, pattern) if image == pattern

matches(image, pattern) if {
  endswith(pattern, "*")
  startswith(image, trim_suffix(pattern, "*"))
}

windows if pod.spec.os.name == "windows"

# Root in a user namespace of its own is nobody on the node (Kubernetes 1.35 and later).
in_user_namespace if pod.spec.hostUsers == false

# Messages: whose field, where it stands, and what is asked of it.
of_container(container, field, rule) := sprintf("container %q: %s.%s[%d].%s %s", [
  object.get(container.spec, "name", ""), pod.field, container.group, container.index, field, rule,
])

of_pod(field, rule) := sprintf("pod: %s.%s %s", [pod.field, field, rule])
