package lib.images

import data.lib.pods

# Every image that the pod names: its containers', and those mounted as volumes.
images := array.concat(
  [found |
    some container in pods.containers
    image := object.get(container.spec, "image", "")
    found := {"image": image, "container": container}
  ],
  [found |
    some index, volume in pods.pod.spec.volumes
    image := volume.image.reference
    not pods.exempt(image)
    found := {"image": image, "volume": index}
  ],
)

says(found, rule) := pods.of_container(found.container, "image", rule)

says(found, rule) := pods.of_pod(sprintf("volumes[%d].image.reference", [found.volume]), rule)

# The repository, with the registry that a short name leaves out, without tag and digest.
repository(image) := concat("/", array.concat(folders, [name])) if {
  parts := split(full(split(image, "@")[0]), "/")
  folders := array.slice(parts, 0, count(parts) - 1)
  name := split(parts[count(parts) - 1], ":")[0]
}

full(image) := image if names_registry(image)

full(image) := concat("/", ["docker.io", image]) if {
  contains(image, "/")
  not names_registry(image)
}

full(image) := concat("/", ["docker.io/library", image]) if not contains(image, "/")

names_registry(image) if {
  contains(image, "/")
  regex.match(`[.:]|^localhost$`, split(image, "/")[0])
}
