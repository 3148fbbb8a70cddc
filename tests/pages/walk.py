"""A cluster's life by the commands of the pages: installed, used, looked at at night, removed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A command, what it ends with, words of what it prints, and what is there before it."""

    command: str
    code: int = 0
    words: str = ""
    until: bool = False
    """Whether what it tells comes a moment later: it is typed again until it says so."""
    before: str = ""
    """The name of the test's preparation before this step."""


SET_LOGIN = (
    "helm upgrade waddle manifests/helm/waddle -n waddle-system --reset-then-reuse-values"
    " --set console.enabled=true --set console.oidc.issuerURL=https://issuer.example.com"
    " --set console.oidc.clientID=waddle-console"
    " --set console.oidc.redirectURL=https://waddle.example.com/oidc/callback"
)
MAKE_SECRET = (
    "kubectl -n waddle-system create secret generic waddle-console-login"
    ' --from-literal=cookie-key="$(openssl rand -base64 48)" --from-literal=client-secret=...'
)
INSTALL = "helm install waddle manifests/helm/waddle --namespace waddle-system --create-namespace"
NAME = "validatingwebhookconfiguration waddle-validating-webhook-configuration"
SECRET = "kubectl -n waddle-system patch secret waddle-webhook-server-cert"
APPLY = "kubectl apply --server-side"

BY_HELM = (
    Step(INSTALL, words="STATUS: deployed"),
    Step(MAKE_SECRET, words="secret/waddle-console-login created"),
    Step(SET_LOGIN, words="STATUS: deployed"),
    Step(
        "helm upgrade waddle manifests/helm/waddle --namespace waddle-system --reset-then-reuse-values"
        " --set mutation.enabled=true",
        words="STATUS: deployed",
    ),
    Step(
        "helm upgrade waddle manifests/helm/waddle --namespace waddle-system"
        " --reset-then-reuse-values --set reports.audit=true",
        words="STATUS: deployed",
    ),
    Step(
        "helm upgrade waddle manifests/helm/waddle --namespace waddle-system"
        " --reset-then-reuse-values --set kyverno.policies=audit",
        words="STATUS: deployed",
    ),
    Step(
        "helm upgrade waddle manifests/helm/waddle --namespace waddle-system"
        " --reset-then-reuse-values --set kyverno.policies=enforce",
        words="STATUS: deployed",
    ),
    Step(
        "helm upgrade waddle manifests/helm/waddle --namespace waddle-system"
        " --reset-then-reuse-values --set decisions.mode=sidecar",
        words="STATUS: deployed",
    ),
    Step(
        "helm upgrade waddle manifests/helm/waddle --namespace waddle-system"
        " --reset-then-reuse-values",
        words="STATUS: deployed",
    ),
    Step("waddle uninstall --webhooks --yes", words="waddle-validating-webhook-configuration"),
    Step("helm uninstall waddle --namespace waddle-system --no-hooks", words="uninstalled"),
    Step(
        "kubectl delete clusterrole,clusterrolebinding waddle-uninstall --ignore-not-found",
        before="an interrupted uninstall",
        words="clusterrole",
    ),
    Step(
        f"{INSTALL} --set image.repository=waddle --set image.tag=0.1.0", words="STATUS: deployed"
    ),
)

BY_KUSTOMIZE = (
    Step("kubectl delete namespace waddle-system", before="without helm", words="deleted"),
    Step(f"{APPLY} --force-conflicts -k manifests/crds", words="serverside-applied"),
    Step(f"{APPLY} -k manifests/overlays/beside-gatekeeper", words="waddle-webhook"),
    Step(f"{APPLY} -k manifests/overlays/fail-closed", words="waddle-webhook"),
    Step(f"kubectl delete {NAME}", words="deleted"),
    Step(f"{APPLY} -k manifests/base", words="waddle-webhook"),
    Step(f"{APPLY} -k .", words="waddle-webhook"),
    Step(f"{APPLY} -k manifests/reports/wgpolicyk8s", words="policyreports"),
)

USED = (
    Step("kubectl -n waddle-system get pods", before="a replica", words="waddle-webhook-0"),
    Step("kubectl -n waddle-system get pods -o wide", words="waddle-webhook-0"),
    Step("kubectl get endpointslices -n waddle-system"),
    Step("kubectl get nodes -o wide"),
    Step("kubectl -n waddle-system get endpointslices"),
    Step("kubectl describe replicaset -l app=web"),
    Step("kubectl apply -f template.yaml", words="created"),
    Step("kubectl apply -f constraint.yaml", words="created", until=True),
    Step(
        "waddle wait --for=enforced K8sRequiredLabels/ns-must-have-owner --timeout 90s", until=True
    ),
    Step("waddle status", words="waddle-webhook-0"),
    Step("waddle status --timeout=30s", words="waddle-webhook-0"),
    Step("kubectl get --raw '/readyz?verbose'", words="readyz check passed"),
    Step("kubectl get constrainttemplates", words="k8srequiredlabels"),
    Step("kubectl wait --for=condition=Active constrainttemplate/k8srequiredlabels", until=True),
    Step("kubectl get constraints", words="ns-must-have-owner"),
    Step("kubectl get k8srequiredlabels ns-must-have-owner -o yaml", words="byPod", until=True),
    Step("kubectl get constraints -o yaml", words="ns-must-have-owner"),
    Step("kubectl get constraints -o wide", words="ns-must-have-owner"),
    Step("kubectl get constrainttemplates,constraints -o wide", words="ns-must-have-owner"),
    Step("kubectl get policyrevisions", words="k8srequiredlabels", until=True),
    Step(
        "kubectl annotate constrainttemplate k8srequiredlabels waddle.dev/rollback-to=3",
        words="annotated",
    ),
    Step(
        "kubectl annotate constrainttemplate k8srequiredlabels waddle.dev/rollback-to-",
        words="annotated",
    ),
    Step("waddle audit --once", code=1, words="ns-must-have-owner"),
    Step("waddle audit --once -o json", code=1, words="ns-must-have-owner"),
    Step("waddle audit --once --policies policies/", code=1, words="needs-owner"),
    Step("waddle migrate gatekeeper", words="as it is"),
    Step("waddle report"),
    Step("kubectl get polr -A -o wide; kubectl get cpolr -o wide"),
    Step("kubectl get polr -A"),
    Step("kubectl -n waddle-system get lease -l waddle.dev/confirms=reports -o yaml"),
    Step("kubectl delete polr,cpolr -A -l app.kubernetes.io/managed-by=waddle"),
    Step("waddle check -f mutators/ --cluster", before="a mutator"),
    Step("kubectl get assignimage registry -o yaml", words="kind: AssignImage"),
    Step("kubectl apply -f first/template.yaml", words="created"),
    Step("kubectl apply -f first/constraint.yaml", words="created", until=True),
    Step("waddle wait --for=enforced RequiredOwner/deployments-have-owners", until=True),
    Step(
        "kubectl create deployment web --image=nginx",
        code=1,
        words="the label owner is missing",
    ),
    Step(
        "kubectl apply -f excused/exception.yaml",
        before="a policy with exceptions",
        words="created",
    ),
    Step("waddle wait PolicyException/shop/agent", words="in force until 2099-12-31"),
    Step("kubectl get policyexceptions -A", words="agent"),
    Step("kubectl apply -f loadtest/policies/p12/templates.yaml", words="created"),
    Step(
        "kubectl apply -f loadtest/policies/p12/constraints.yaml"
        " -f loadtest/locust/policies/warnings.yaml",
        until=True,
    ),
    Step(f'{SECRET} -p \'{{"data":{{"tls.key":""}}}}\'', words="patched"),
    Step(
        f'{SECRET} --type=json -p \'[{{"op":"remove","path":"/data"}}]\'',
        words="patched",
        until=True,
    ),
)

REMOVED = (
    Step(
        "kubectl delete -k manifests/base --ignore-not-found",
        before="no replica",
        words="deleted",
    ),
    Step("waddle uninstall --policies"),
    Step("waddle uninstall --policies --yes"),
)

TAKEN_OVER = (
    Step(
        f"{APPLY} -k manifests/overlays/beside-gatekeeper",
        before="gatekeeper",
        words="waddle-webhook",
    ),
    Step(
        "kubectl delete validatingwebhookconfiguration gatekeeper-validating-webhook-configuration",
        words="deleted",
    ),
    Step(
        "kubectl delete mutatingwebhookconfiguration gatekeeper-mutating-webhook-configuration",
        words="deleted",
    ),
    Step(
        "kubectl -n gatekeeper-system delete deployment"
        " gatekeeper-controller-manager gatekeeper-audit",
        words="deleted",
    ),
    Step(f"{APPLY} --force-conflicts -k manifests/base", words="waddle-audit"),
    Step(f"{APPLY} --force-conflicts -k manifests/crds", words="serverside-applied"),
    Step(
        "helm install waddle manifests/helm/waddle --namespace waddle-system --take-ownership",
        words="STATUS: deployed",
    ),
    Step("waddle uninstall --webhooks --yes", words="waddle-validating-webhook-configuration"),
    Step("kubectl delete namespace waddle-system", words="deleted"),
    Step(
        "kubectl delete clusterrole,clusterrolebinding,role,rolebinding -n default"
        " -l app.kubernetes.io/name=waddle",
        words="waddle-events",
    ),
    Step("kubectl get constrainttemplates", words="k8srequiredlabels"),
)
"""Commands by which Gatekeeper's policies go on under Waddle, and stay when Waddle goes."""

WALK = (*BY_HELM, *BY_KUSTOMIZE, *USED, *REMOVED)
