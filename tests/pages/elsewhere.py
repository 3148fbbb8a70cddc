"""Commands of the pages that other tests run, and those that no test runs, each with its reason."""

HELD = {
    "waddle export --static admission policies/ --allow-user ops@example.com"
    " --allow-group platform": (
        "tests/webhook/cli/test_export.py",
        "waddle(*command.split(), cwd=tmp_path)",
    ),
    "waddle audit --once --kyverno-policies=audit": (
        "tests/system/test_kyverno_policies.py",
        '"--kyverno-policies=audit"',
    ),
    "waddle audit --once --admission-policies": (
        "tests/system/test_admission_policies_of_a_cluster.py",
        'waddle("audit", "--once", "--admission-policies"',
    ),
    "waddle check --cluster": (
        "tests/system/test_admission_policies_of_a_cluster.py",
        'waddle("check", "-f", file, "--cluster"',
    ),
    "waddle check --decisions": (
        "tests/webhook/admission_policies/test_doors.py",
        'waddle("check", "-f", file, "--decisions"',
    ),
    "waddle check --reads": (
        "tests/webhook/cli/test_check_reads.py",
        'waddle("check", "-f", policies(tmp_path), "--reads")',
    ),
    "waddle verify-image -f images/ registry.example/team/app:1.4": (
        "tests/behaviour/test_signed_images_are_what_the_page_says.py",
        "waddle(*TYPED.split()",
    ),
    "waddle provider images -f images/ --cert-dir certs/": (
        "tests/webhook/images/test_provider_process.py",
        '"webhook", "provider", "images"',
    ),
    "helm upgrade waddle manifests/helm/waddle --namespace waddle-system --reset-then-reuse-values"
    " --set imageProvider.enabled=true --set 'imageProvider.keySecrets={release}'"
    ' --set imageProvider.caBundle="$(base64 -w0 tls.crt)"': (
        "tests/test_manifests.py",
        "imageProvider.enabled=true,imageProvider.keySecrets={release,security}",
    ),
    "kubectl create secret tls waddle-images-tls -n waddle-system --cert=tls.crt --key=tls.key": (
        "tests/webhook/images/served.py",
        'certificates / "tls.crt"',
    ),
    "kubectl apply -f policies/supply-chain/signed-images/template.yaml": (
        "tests/system/test_signed_images.py",
        'LIBRARY / "signed-images" / "template.yaml"',
    ),
    "kubectl create secret generic release -n waddle-system --from-file=cosign.pub": (
        "tests/system/test_signed_images.py",
        '"secrets" / "release" / "cosign.pub"',
    ),
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
    "waddle test -f excused/": (
        "tests/behaviour/test_exceptions_excuse_what_the_page_says.py",
        "waddle(*command.split())",
    ),
    "waddle check -f excused/": (
        "tests/behaviour/test_exceptions_excuse_what_the_page_says.py",
        "waddle(*command.split())",
    ),
    "waddle except denial.txt --object Pod/db -n shop -f excused/ --reason 'moves in May'": (
        "tests/behaviour/test_exceptions_excuse_what_the_page_says.py",
        "waddle(*split(command))",
    ),
    "waddle test -f first/template.yaml -f owners/": (
        "tests/behaviour/test_what_is_left_out_is_what_the_page_says.py",
        "waddle(*typed.split())",
    ),
    "waddle test -f policies/general/allowed-registries/template.yaml"
    " -f policies/general/image-digests/template.yaml -f groups/images.yaml"
    " -f groups/pods.yaml": (
        "tests/behaviour/test_groups_do_what_the_page_says.py",
        "waddle(*typed())",
    ),
    "kubectl apply -f policies/general/allowed-registries/template.yaml": (
        "tests/system/test_groups.py",
        "put_template",
    ),
    "kubectl apply -f policies/general/image-digests/template.yaml": (
        "tests/system/test_groups.py",
        "put_template",
    ),
    "waddle check -f policies/general/replicas/template.yaml -f groups/replicas.yaml": (
        "tests/behaviour/test_groups_do_what_the_page_says.py",
        "waddle(*check.split())",
    ),
    "waddle wait ConstraintTemplate/allowregistries ConstraintTemplate/requireimagedigests": (
        "tests/system/test_groups.py",
        "ConstraintTemplate/requireimagedigests",
    ),
    "kubectl apply -f groups/images.yaml": ("tests/system/test_groups.py", "groups/images.yaml"),
    "waddle test -f first/template.yaml -f ratchet/": (
        "tests/behaviour/test_denying_from_today_does_what_the_page_says.py",
        "waddle(*TYPED.split())",
    ),
    "waddle except --baseline --constraint no-privileged --for 2160h"
    " --reason 'from before the policy' > baseline.yaml": (
        "tests/system/test_baseline.py",
        '"--baseline", "--constraint"',
    ),
    "kubectl apply -f baseline.yaml": ("tests/system/test_baseline.py", "clusterpolicyexceptions"),
    "kubectl get policyexceptions,clusterpolicyexceptions -A -l waddle.dev/baseline": (
        "tests/system/test_baseline.py",
        "labelSelector",
    ),
    "waddle wait ValidatingPolicy/host": ("tests/system/test_kyverno_policies.py", '"wait", named'),
    "waddle wait ConstraintGroup/images-we-trust": (
        "tests/system/test_groups.py",
        "ConstraintGroup/images-we-trust",
    ),
    "waddle check -f tags/template.yaml -f tags/samples/constraint.yaml": (
        "tests/behaviour/test_writing_policies.py",
        "waddle(*check)",
    ),
    "waddle check -f tags/template.yaml -f tags/samples/constraint.yaml --reads": (
        "tests/behaviour/test_writing_policies.py",
        "waddle(*reads)",
    ),
    "waddle verify tags --verbose": (
        "tests/behaviour/test_writing_policies.py",
        "waddle(*verify)",
    ),
    "curl -sk https://127.0.0.1:8443/v1/admit -H 'Content-Type: application/json'"
    " -d @review.json": (
        "tests/behaviour/test_the_first_policy.py",
        "test_the_server_answers_the_review_of_the_page_as_the_page_shows",
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
    "waddle test -f template.yaml -f constraint.yaml -f pod.yaml"
    " --provider signatures=answers.yaml": (
        "tests/webhook/cli/test_external_data_page.py",
        "waddle(*typed, cwd=folder)",
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
    "waddle console --kyverno-policies=enforce": (
        "tests/behaviour/test_the_console_in_a_browser.py",
        "--kyverno-policies=enforce",
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
    "kubectl get providers": ("tests/system/test_providers.py", "PROVIDERS"),
    "kubectl get provider signatures -o yaml": ("tests/system/test_providers.py", "by_pod(PATH)"),
    "helm upgrade waddle manifests/helm/waddle --namespace waddle-system --reset-then-reuse-values"
    " --set externalData.trust.namespace=signing": (
        "tests/chart_values.py",
        "externalData.trust.namespace",
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
    "helm install waddle oci://registry.example/charts/waddle --namespace waddle-system"
    " --create-namespace": (
        "tests/system/test_installed_by_helm.py",
        'helm("install", "waddle", chart',
    ),
    "pipx install .": ("tests/test_installers.py", '"pipx"'),
    "uv tool install .": ("tests/test_installers.py", '"tool"'),
    "kubectl -n gatekeeper-system logs -l control-plane=controller-manager --tail=-1"
    " > gatekeeper.log": ("tests/system/test_compared_with_gatekeeper.py", "--log-denies"),
    "pip install .": ("tests/tasks/1-install.sh", "pip install"),
    "pip install '.[registry]'": (
        "tests/test_a_plain_installation.py",
        '"policy pull registry.example/a:1": "registry"',
    ),
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

REGISTRIES = {
    "conftest push registry.example/team/rego:v1 -p policy/": (
        "tests/conformance/test_registries.py",
        '"push", f"{host}/ours", "-p", "policy"',
    ),
    "conftest pull oci://registry.example/team/rego:v1": (
        "tests/conformance/test_registries.py",
        '"pull", f"oci://{host}/theirs:v1"',
    ),
    "conftest doc policy/": ("tests/conformance/test_registries.py", '["doc", "policy"]'),
    "waddle policy push registry.example/team/policies:v1 -f policies/": (
        "tests/webhook/cli/test_policy.py",
        '"policy", "push", image, "-f", folder',
    ),
    "waddle policy pull registry.example/team/policies:v1 -d policies": (
        "tests/webhook/cli/test_policy.py",
        '"policy", "pull", image, "-d"',
    ),
    "waddle policy pull registry.example/team/policies:v1 -d policies --verification-policy keys/": (
        "tests/webhook/cli/test_policy_sources.py",
        'return "--verification-policy"',
    ),
    "waddle policy list catalogue.yaml": (
        "tests/webhook/cli/test_policy_sources.py",
        'waddle("policy", "list", file)',
    ),
    "waddle policy install baseline --catalogue catalogue.yaml": (
        "tests/webhook/cli/test_policy_sources.py",
        '"policy", "pull", "labels", "--catalogue", file',
    ),
    "waddle test --image registry.example/team/policies:v1 -f manifest.yaml": (
        "tests/webhook/cli/test_policy.py",
        '"test", "--image", image, "-f"',
    ),
    "waddle verify --image registry.example/team/policies:v1": (
        "tests/webhook/cli/test_policy.py",
        '"verify", "--image", image',
    ),
    "waddle check --image registry.example/team/policies:v1 --cluster": (
        "tests/webhook/cli/test_policy.py",
        '"check", "--image", image',
    ),
    "waddle policy install registry.example/team/policies:v1": (
        "tests/system/test_policies_from_registries.py",
        'policy("install", first)',
    ),
    """kubectl patch k8srequiredlabels owner --type=merge -p '{"spec": {"enforcementAction": "deny"}}'""": (
        "tests/system/test_policies_from_registries.py",
        '{"spec": {"enforcementAction": "warn"}}',
    ),
    "waddle policy upgrade registry.example/team/policies:v2": (
        "tests/system/test_policies_from_registries.py",
        'policy("upgrade", second)',
    ),
}
HELD |= REGISTRIES
"""Of pages about registries: no registry is at that address."""

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
            'python -m loadtest.drill shipped --row "Pods of 60 KB$"',
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
        ("pip install '.[jsonnet]'", "pip install '.[oidc]'", "pip install '.[otlp]'"),
        REGISTRY,
    ),
    **dict.fromkeys(
        (
            "kubectl -n waddle-system rollout status deployment/waddle-webhook",
            "kubectl -n waddle-system rollout undo deployment/waddle-webhook",
            "kubectl -n waddle-system port-forward svc/waddle-console 8090",
            "kubectl -n waddle-system port-forward deploy/waddle-webhook 9090",
            "curl 'localhost:9090/readyz?verbose'",
            "kubectl -n waddle-system logs deploy/waddle-audit",
            (
                "kubectl -n waddle-system logs -l gatekeeper.sh/operation=webhook -c decisions"
                " --tail=-1 > decisions.jsonl"
            ),
            "kubectl logs -c decisions",
            "kubectl -n waddle-system logs -l gatekeeper.sh/operation=webhook --tail=100 --prefix",
        ),
        NO_KUBELET,
    ),
    'kpt fn eval manifests/ --exec "waddle krm -f policies/"': "kpt is no Go module that can be installed;"
    " tests/test_pipelines.py and the KRM tests run the function",
    "helm install waddle manifests/helm/waddle --namespace waddle-system --create-namespace"
    " --set image.repository=REGISTRY/waddle": "as another of the pages, with the reader's registry",
}
"""Reasons why no test runs a command."""
