"""The expressions of random policies, by what they give."""

TESTS = (
    "has(object.data)",
    "object.data.size() > 1",
    "object.data.a == 'x'",
    "object.data['a'].startsWith('x')",
    "'a' in object.data",
    "int(object.data.n) > 3",
    "int(object.data.n) / int(object.data.z) == 1",
    "object.data.all(k, k.size() == 1)",
    "object.data.exists(k, object.data[k] == 'y')",
    "object.data.exists_one(k, object.data[k].contains('x'))",
    "object.metadata.labels.?team.orValue('none') == 'red'",
    "object.?data.?q.hasValue()",
    "quantity(object.data.q).isGreaterThan(quantity('1Gi'))",
    "isQuantity(object.data.q)",
    "object.data.a.matches('^[xy]+$')",
    "object.data.a.lowerAscii() in ['x', 'y']",
    "[object.data.a, object.data.b].join('-') == 'x-y'",
    "object.data.map(k, object.data[k]).filter(v, v != 'x').size() < 2",
    "oldObject == null",
    "oldObject != null && oldObject.data.a == object.data.a",
    "request.operation == 'UPDATE'",
    "request.namespace == namespaceObject.metadata.name",
    "request.resource.resource == 'configmaps'",
    "request.dryRun",
    "has(namespaceObject.metadata.labels)",
    "format.dns1123Label().validate(object.data.a).hasValue()",
    "semver(object.data.s).isLessThan(semver('2.0.0'))",
    "ip(object.data.ip).family() == 4",
    "timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
    "duration('1h') > duration('59m')",
    "authorizer.requestResource.check('create').allowed()",
    "authorizer.group('').resource('pods').namespace('default').check('get').allowed()",
)
OF_REQUESTS = (
    "object == null",
    "object != null && object.metadata.name == request.name",
    "object.metadata.?labels == oldObject.metadata.?labels",
    "oldObject.metadata.labels.?team.orValue('none') == 'red'",
    "oldObject.data.a != object.data.a",
    "request.operation == 'DELETE'",
    "request.name.endsWith('-1')",
    "has(request.subResource) && request.subResource == 'scale'",
    "request.subResource == ''",
    "has(request.requestSubResource)",
    "request.kind.kind == 'Namespace'",
    "request.requestKind.group == ''",
    "request.requestResource.version == 'v1'",
    "request.options.kind == 'DeleteOptions'",
    "request.options.dryRun == ['All']",
    "has(request.options)",
    "has(request.namespace)",
    "namespaceObject == null",
    "'kubernetes.io/metadata.name' in object.metadata.labels",
    "object.spec.replicas > 1",
    "object.spec.replicas >= oldObject.spec.replicas",
    "has(object.spec.template)",
    "has(object.deleteOptions)",
    "'sh' in object.command",
    "authorizer.requestResource.check(request.operation).allowed()",
)
WITH_PARAMS = (
    "object.data.a == params.data.a",
    "int(object.data.n) <= int(params.data.max)",
    "params == null || params.data.size() > 0",
    "params.metadata.name != 'p1'",
    "has(params.data.none)",
)
MESSAGES = (
    "'a is ' + object.data.a",
    "string(object.data.size())",
    "''",
    "'two\\nlines'",
    "'n: ' + string(int(object.data.n) + 1)",
)
VALUES = ("'v'", "object.data.a", "null", "string(object.data.none)", "object.metadata.name")
CHANGES = (
    'Object{metadata: Object.metadata{labels: {"new": "1"}}}',
    'Object{metadata: Object.metadata{annotations: {"a/b": string(object.data.size())}}}',
    'Object{data: {"a": object.data.a + "!"}}',
    "has(object.data.b) ? Object{data: {'b': 'changed'}} : Object{}",
    "Object{metadata: Object.metadata{?labels: optional.none()}}",
    "Object{data: Object.data{x: 'y'}}",
    "Object{metadata: Object.wrong{labels: {'a': 'b'}}}",
    "Object{metadata: Object.metadata{finalizers: ['example.com/a', 'example.com/b']}}",
    '[JSONPatch{op: "add", path: "/data/c", value: "c"}]',
    '[JSONPatch{op: "remove", path: "/data/b"}]',
    '[JSONPatch{op: "replace", path: "/data/a", value: string(1 + 1)}]',
    '[JSONPatch{op: "test", path: "/data/a", value: "x"}, JSONPatch{op: "remove", path: "/data/a"}]',
    '[JSONPatch{op: "copy", from: "/data/a", path: "/data/copied"}]',
    '[JSONPatch{op: "move", from: "/data/none", path: "/data/moved"}]',
    '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("x/y~z"), value: "v"}]',
    'has(object.data.n) ? [JSONPatch{op: "add", path: "/data/d", value: object.data.n}] : []',
)
PATCHES_OF_LITTLE = (
    '[JSONPatch{op: "add", path: "/none/a", value: "v"}]',
    '[JSONPatch{op: "remove", path: "/none/a"}]',
    '[JSONPatch{op: "replace", path: "/none/a", value: "v"}]',
    '[JSONPatch{op: "test", path: "/none/a", value: "v"}]',
    '[JSONPatch{op: "copy", from: "/metadata/name", path: "/none/a"}]',
    '[JSONPatch{op: "move", from: "/metadata/labels", path: "/none/a"}]',
    '[JSONPatch{op: "copy", from: "/none/a", path: "/data/a"}]',
    '[JSONPatch{op: "copy", from: "/data/a", path: "/data/b/c"}]',
    *(
        '[JSONPatch{op: "add", path: "/metadata/finalizers", value: ["example.com/a"]}, '
        f"JSONPatch{{{operation}}}]"
        for operation in (
            'op: "add", path: "/metadata/finalizers/5", value: "example.com/b"',
            'op: "remove", path: "/metadata/finalizers/5"',
            'op: "replace", path: "/metadata/finalizers/5", value: "example.com/b"',
            'op: "test", path: "/metadata/finalizers/5", value: "example.com/b"',
            'op: "copy", from: "/metadata/finalizers/5", path: "/metadata/finalizers/-"',
            'op: "move", from: "/metadata/finalizers/5", path: "/metadata/finalizers/-"',
            'op: "copy", from: "/metadata/name", path: "/metadata/finalizers/5"',
            'op: "move", from: "/metadata/annotations", path: "/metadata/finalizers/5"',
        )
    ),
)
"""JSON Patches of what is often not there."""
POD_CHANGES = (
    (
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, "
        "Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}"
    ),
    "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'i', image: 'i'}]}}",
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 's', "
        "env: [Object.spec.containers.env{name: 'A', value: '1'}]}]}}"
    ),
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'b', "
        "env: [Object.spec.containers.env{name: 'A', value: '2'}, "
        "Object.spec.containers.env{name: 'B', value: '3'}]}, "
        "Object.spec.containers{name: 'a', ports: [Object.spec.containers.ports{containerPort: 80}]}]}}"
    ),
    "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['x']}]}}",
    "Object{spec: Object.spec{nodeSelector: {'disk': 'ssd'}}}",
    "Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsNonRoot: true}}}",
    "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}]}}",
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', "
        "resources: Object.spec.containers.resources{limits: {'cpu': '1'}}}]}}"
    ),
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a'}, "
        "Object.spec.containers{name: 'a'}]}}"
    ),
    '[JSONPatch{op: "add", path: "/spec/containers/0/args", value: ["x"]}]',
    (
        '[JSONPatch{op: "add", path: "/spec/containers/-", value: '
        'Object.spec.containers{name: "c", image: "c"}}]'
    ),
    '[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"disk": "ssd"}}]',
)
