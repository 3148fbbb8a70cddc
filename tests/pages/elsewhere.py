"""Commands of the pages that other tests run, and those that no test runs, each with its reason."""

HELD = {
    "make run": ("tests/behaviour/test_the_readme_is_true.py", '"--assume-old=setup", "run"'),
    "curl -sk https://127.0.0.1:8443/v1/admit -H 'Content-Type: application/json'"
    " -d @docs/examples/bad-pod.json": (
        "tests/behaviour/test_the_readme_is_true.py",
        "test_the_answers_are_those_of_the_readme",
    ),
    "curl -sk https://127.0.0.1:8443/v1/admit -H 'Content-Type: application/json'"
    " -d @docs/examples/good-pod.json": (
        "tests/behaviour/test_the_readme_is_true.py",
        "test_the_answers_are_those_of_the_readme",
    ),
    "make demo": ("tests/behaviour/test_the_demonstration.py", "waddle demo"),
    "waddle check -f first/template.yaml -f first/constraint.yaml": (
        "tests/behaviour/test_the_first_policy.py",
        "waddle(*check)",
    ),
    "waddle test -f first/template.yaml -f first/constraint.yaml -f first/deployment.yaml": (
        "tests/behaviour/test_the_first_policy.py",
        "waddle(*test)",
    ),
    "waddle test -f first/template.yaml -f owners/": (
        "tests/behaviour/test_exceptions_leave_out_what_the_page_says.py",
        "waddle(*typed.split())",
    ),
    "waddle check -f tags/template.yaml -f tags/samples/constraint.yaml": (
        "tests/behaviour/test_writing_policies.py",
        "waddle(*check)",
    ),
    "waddle verify tags --verbose": (
        "tests/behaviour/test_writing_policies.py",
        "waddle(*verify)",
    ),
    "waddle verify first": ("tests/behaviour/test_the_first_policy.py", "waddle(*verify)"),
    "waddle serve --policies first --host 127.0.0.1": (
        "tests/behaviour/test_the_first_policy.py",
        "Server(first)",
    ),
    "waddle serve --policies policies": (
        "tests/behaviour/test_the_readme_is_true.py",
        'Server(ROOT / "policies")',
    ),
    "waddle serve --kubernetes": ("tests/behaviour/test_the_demonstration.py", "waddle demo"),
    "waddle serve --kubernetes --operation=audit": (
        "tests/system/test_decisions_of_an_installation.py",
        '"audit"',
    ),
    "waddle mutate -f mutators/ -f pod.yaml": (
        "tests/webhook/cli/test_mutation_page.py",
        'waddle("mutate", "-f", "mutators/", "-f", "pod.yaml", cwd=folder)',
    ),
    "waddle mutate -f mutators/ -f pod.yaml -o patch": (
        "tests/webhook/cli/test_mutation_page.py",
        'waddle("mutate", "-f", "mutators/", "-f", "pod.yaml", "-o", "patch", cwd=folder)',
    ),
    "waddle test -f policies/ -f mutators/ -f pod.yaml": (
        "tests/webhook/cli/test_mutation_page.py",
        '"test -f policies/ -f mutators/ -f pod.yaml"',
    ),
    "waddle check -f mutators/ -f pod.yaml": (
        "tests/webhook/cli/test_mutation_page.py",
        '"check -f mutators/ -f pod.yaml"',
    ),
    "waddle expand -f expansion/ -f deployment.yaml": (
        "tests/webhook/cli/test_mutation_page.py",
        '"expand -f expansion/ -f deployment.yaml"',
    ),
    "waddle console --policies policies/ --manifests manifests/": (
        "tests/webhook/console/folder.py",
        "--manifests=",
    ),
    "waddle console --context staging --context production": (
        "tests/behaviour/test_the_console_shows_several_clusters.py",
        "--context=",
    ),
    "waddle sidecar --config sidecar.yaml --check": (
        "tests/behaviour/test_notifications.py",
        '"--check"',
    ),
    "waddle console --kubeconfig ~/.kube/config": (
        "tests/behaviour/test_the_console_shows_a_cluster.py",
        "--kubeconfig",
    ),
    "waddle serve --policies policies/ --otlp-endpoint=grpc://collector:4317 --enable-tracing"
    " --metrics-backend=opentelemetry": (
        "tests/behaviour/test_traces_and_metrics_reach_a_collector.py",
        "metrics-backend",
    ),
    "waddle test --target=terraform": ("tests/webhook/cli/test_targets.py", "--target="),
    "waddle wait --for=enforced AssignImage/registry": (
        "tests/system/test_mutators.py",
        "--for=enforced",
    ),
    "helm uninstall waddle --namespace waddle-system": (
        "tests/system/test_installed_by_helm.py",
        '("uninstall", "waddle")',
    ),
    "helm test waddle --namespace waddle-system": (
        "tests/system/test_installed_by_helm.py",
        'helm("test", "waddle")',
    ),
    "helm package manifests/helm/waddle && helm push waddle-*.tgz oci://registry.example/charts": (
        "tests/system/test_installed_by_helm.py",
        'helm("push", package',
    ),
    "helm install waddle oci://registry.example/charts/waddle": (
        "tests/system/test_installed_by_helm.py",
        'helm("install", "waddle", chart',
    ),
    "pipx install .": ("tests/test_installers.py", '"pipx"'),
    "uv tool install .": ("tests/test_installers.py", '"tool"'),
    "kubectl -n gatekeeper-system logs -l control-plane=controller-manager --tail=-1"
    " > gatekeeper.log": ("tests/system/test_compared_with_gatekeeper.py", "--log-denies"),
    "pip install .": ("tests/tasks/1-install.sh", "pip install"),
    "pip install '.[cluster]'": ("tests/system/test_a_new_user_s_tasks.py", "[cluster]"),
    "pip install waddle_admission-0.1.0-py3-none-any.whl": (
        "tests/test_a_plain_installation.py",
        "pins, wheel",
    ),
    "waddle init shop": ("tests/tasks/2-first-denial-on-files.sh", "waddle init shop"),
    "waddle verify shop/policies": (
        "tests/tasks/2-first-denial-on-files.sh",
        "waddle verify shop/policies",
    ),
    "waddle test shop/policies shop/manifests": (
        "tests/tasks/2-first-denial-on-files.sh",
        "waddle test shop/policies shop/manifests",
    ),
    ".venv/bin/python -m tests.programs loadgen": ("tests/test_loadgen.py", "loadgen"),
    ".venv/bin/python -m tests.simulation log --count 2000": (
        "tests/simulation/test_worlds.py",
        "def test_",
    ),
}
"""The file that runs it, and words of it: what such a command does, with other files or ports."""

NO_KUBELET = "the tests' control plane has no kubelet and no Deployments' controller"
REGISTRY = "asks a registry that is the reader's"
OURS = "a target of this repository: it is there by tests/test_repository.py, and people run it"
LOAD = "minutes of load: tests/loadtest has its parts"

LEFT = {
    "make test": "is what runs this",
    "make test-all": "is what runs this",
    **dict.fromkeys(
        (
            *("make setup", "make coverage", "make test-browser", "make site", "make check"),
            *("make format", "make simulate-worlds WORLD=log SEED=346"),
            "make simulate-new SIMULATE_SECONDS=600",
            "make coverage-generator",
            'make mutants MUTANTS="--share 0.1"',
            ".venv/bin/python -m tests.differential.composition --seconds 600",
            ".venv/bin/pytest tests/differential/composition",
            ".venv/bin/pytest tests/webhook/rego/builtins/test_builtins_against_opa.py -k reverse",
        ),
        OURS,
    ),
    **dict.fromkeys(
        (
            "make bench-curves CURVES=--quick",
            'make bench-curves CURVES="--only synced"',
            'make bench-curves CURVES="--again"',
            "make load",
            'make load LOAD="--shape spike --users 20 --rate 200"',
            'make load LOAD="--replicas 3 --policies p100 --run-time 5m"',
            'make load LOAD="--case indirect"',
            'make load LOAD="--case indirect --namespace waddle-load --shape stress --users 16"',
            (
                ".venv-load/bin/locust -f loadtest/locust/direct.py --master --expect-workers 4"
                " --headless --targets https://10.0.0.7:8443,https://10.0.0.8:8443 --users 64"
                " --rate 4000 --run-time 10m --html loadtest/results/locust-direct.html"
                " --csv loadtest/results/locust-direct"
            ),
            ".venv-load/bin/locust -f loadtest/locust/direct.py --worker --master-host MASTER",
        ),
        LOAD,
    ),
    "export KUBECONFIG=...": "the reader's own file",
    **dict.fromkeys(
        ("pip install 'waddle-admission[jsonnet]'",),
        REGISTRY,
    ),
    **dict.fromkeys(
        (
            "kubectl -n waddle-system rollout status deployment/waddle-webhook",
            "kubectl -n waddle-system port-forward svc/waddle-console 8090",
            "kubectl -n waddle-system port-forward deploy/waddle-webhook 9090",
            "curl 'localhost:9090/readyz?verbose'",
            "kubectl -n waddle-system logs deploy/waddle-audit",
            "kubectl logs -c decisions",
            "kubectl -n waddle-system logs -l gatekeeper.sh/operation=webhook --tail=100 --prefix",
        ),
        NO_KUBELET,
    ),
    'kpt fn eval . --exec "waddle krm -f policies/"': "kpt is no Go module that can be installed;"
    " tests/test_pipelines.py and the KRM tests run the function",
    "helm install waddle manifests/helm/waddle --namespace waddle-system --create-namespace"
    " --set image.repository=REGISTRY/waddle": "as another of the pages, with the reader's registry",
}
"""Why no test runs it."""
