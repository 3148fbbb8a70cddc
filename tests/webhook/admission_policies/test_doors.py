"""ValidatingAdmissionPolicies through every door over files."""

import io
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from waddle import InvalidPoliciesError, NoVerdictError, Policies, PolicyWarning

from tests.policies import definition
from tests.webhook.admission_policies.making import PODS, binding, pod, policy, request
from tests.webhook.cli.in_process import waddle

Json = dict[str, Any]
NAMED = policy("object.metadata.name != 'web'", name="named")
LIMITED = policy(
    name="limited",
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    validations=[
        {
            "expression": "size(object.spec.containers) <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max",
        }
    ],
)
LIMITS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limits", "namespace": "shop"},
    "data": {"max": "0"},
}
LIMITED_BY = binding(
    "here", "limited", paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}
)
ASKING = policy("authorizer.group('').resource('pods').check('get').allowed()", name="asking")


def written(folder: Path, *documents: Json) -> str:
    file = folder / "all.yaml"
    file.write_text("\n---\n".join(json.dumps(one, indent=1) for one in documents))
    return str(file)


def reviewed(folder: Path, *documents: Json) -> Any:
    return waddle("test", "-f", written(folder, *documents))


def test_violations_stand_beside_those_of_constraints(tmp_path):
    bound = binding("everywhere", "named")
    done = reviewed(tmp_path, NAMED, bound, LIMITED, LIMITED_BY, LIMITS, pod())
    assert done.returncode == 1
    assert "ValidatingAdmissionPolicy/limited  [binding here] at most 0" in done.stdout
    assert "[binding everywhere] failed expression: object.metadata.name != 'web'" in done.stdout
    assert "2 violations (2 deny) in 2 reviewed objects, by 2 constraints" in done.stdout


@pytest.mark.parametrize(
    ("actions", "code", "message"),
    [
        (["Deny", "Audit"], 1, "1 deny, 1 dryrun"),
        (["Warn"], 0, "1 warn"),
        (["Audit"], 0, "1 dryrun"),
    ],
)
def test_actions_are_those_of_the_binding(tmp_path, actions, code, message):
    done = reviewed(tmp_path, NAMED, binding("b", "named", validationActions=actions), pod())
    assert done.returncode == code
    assert message in done.stdout


def test_the_namespace_default_has_its_label_also_without_a_manifest(tmp_path):
    """The API server writes it at each Namespace, and each cluster has this one."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    chosen = policy("namespaceObject.metadata.name != 'default'", name="chosen")
    chosen["spec"]["matchConstraints"]["namespaceSelector"] = selector
    obj = pod()
    obj["metadata"]["namespace"] = "default"
    assert reviewed(tmp_path, chosen, binding("b", "chosen"), obj).returncode == 1
    admission = {"uid": "u", **request(obj, namespace="default")}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": admission}
    assert reviewed(tmp_path, chosen, binding("b", "chosen"), review).returncode == 1


@pytest.mark.parametrize("output", ["json", "yaml", "sarif", "junit", "github", "text"])
def test_every_format_has_them(tmp_path, output):
    file = written(tmp_path, NAMED, binding("b", "named"), pod())
    done = waddle("test", "-f", file, "-o", output)
    assert done.returncode == 1
    assert "[binding b] failed expression" in done.stdout


def test_nothing_is_green_that_was_not_asked(tmp_path):
    done = reviewed(tmp_path, NAMED, pod())
    assert done.returncode == 2
    assert "ValidatingAdmissionPolicy/named: no binding names it" in done.stderr
    assert "no object matches ValidatingAdmissionPolicy/named" in done.stderr
    assert "there is no constraint" not in done.stdout + done.stderr
    done = reviewed(tmp_path, NAMED, binding("b", "named"), LIMITS)
    assert "ValidatingAdmissionPolicy/named matched no object" in done.stderr
    done = reviewed(tmp_path, NAMED, binding("b", "other"), pod())
    assert "there is no ValidatingAdmissionPolicy other" in done.stderr


def test_the_authorizer_is_undecided_and_no_success(tmp_path):
    done = reviewed(tmp_path, ASKING, binding("b", "asking"), pod())
    assert done.returncode == 1
    assert "asks the authorizer whether nobody may get pods, which no SubjectAccess" in done.stderr


def test_several_parameters_are_each_to_be_satisfied(tmp_path):
    more = {**LIMITS, "metadata": {"name": "more", "namespace": "shop", "labels": {"a": "b"}}}
    named = {**LIMITS, "metadata": {**LIMITS["metadata"], "labels": {"a": "b"}}}
    reference = {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"}
    bound = binding("b", "limited", paramRef=reference)
    done = reviewed(tmp_path, LIMITED, bound, named, {**more, "data": {"max": "9"}}, pod())
    assert "[binding b, parameters shop/limits] at most 0" in done.stdout
    assert "shop/more" not in done.stdout


@pytest.mark.parametrize(
    ("action", "failure", "code", "message"),
    [
        ("Deny", "Fail", 1, "no params found for policy binding with `Deny`"),
        ("Deny", "Ignore", 0, "0 violations"),
        ("Allow", "Fail", 0, "0 violations"),
        ("Allow", "Ignore", 0, "0 violations"),
    ],
)
def test_parameters_that_are_not_there(tmp_path, action, failure, code, message):
    document = {**LIMITED, "spec": {**LIMITED["spec"], "failurePolicy": failure}}
    bound = binding("b", "limited", paramRef={"name": "x", "parameterNotFoundAction": action})
    done = reviewed(tmp_path, document, bound, pod())
    assert done.returncode == code
    assert message in done.stdout
    assert "its paramRef finds no ConfigMap x among what was given" in done.stderr


def test_a_binding_of_the_first_version_denies_without_parameters(tmp_path):
    """That version alone has a default for parameterNotFoundAction."""
    bound = binding("b", "limited", paramRef={"name": "x"})
    bound["apiVersion"] = "admissionregistration.k8s.io/v1alpha1"
    done = reviewed(tmp_path, LIMITED, bound, pod())
    assert "no params found for policy binding with `Deny`" in done.stdout


def test_an_object_without_a_namespace_goes_into_default(tmp_path):
    obj = pod()
    del obj["metadata"]["namespace"]
    document = policy("object.metadata.namespace == 'default'", "request.namespace == 'default'")
    assert reviewed(tmp_path, document, binding(), obj).returncode == 0


def test_an_admission_review_is_the_request_that_it_holds(tmp_path):
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "DELETE",
            "name": "web",
            "namespace": "shop",
            "userInfo": {"username": "eve"},
            "object": None,
            "oldObject": pod(),
        },
    }
    document = policy("request.userInfo.username == 'ada'", rule={"operations": ["DELETE"]})
    done = reviewed(tmp_path, document, binding(), review)
    assert "request.userInfo.username == 'ada'" in done.stdout
    assert reviewed(tmp_path, policy("false"), binding(), review).returncode == 0


def test_check_tells_of_faults_with_file_and_line(tmp_path):
    wrong = policy("true", "1 == 'a'", name="wrong")
    file = written(tmp_path, wrong, binding("b", "none"), LIMITED, LIMITED_BY, pod())
    done = waddle("check", "-f", file)
    assert done.returncode == 1
    lines = Path(file).read_text().splitlines()
    line = next(at for at, one in enumerate(lines, 1) if "1 == 'a'" in one)
    assert f"{file}:{line}: ValidatingAdmissionPolicy/wrong: spec.validations[1]." in done.stdout
    assert "there is no ValidatingAdmissionPolicy none" in done.stdout
    assert "its paramRef finds no ConfigMap limits among what was given: failure" in done.stdout
    assert "3 policies can be used, 1 cannot" in done.stdout
    assert "ValidatingAdmissionPolicy/limited: 0 violations now, 1 then (+1 -0)" in done.stdout


def test_check_asks_whether_another_resource_is_meant(tmp_path):
    wrong = policy("true", name="wrong")
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["pod/exec"],
    }
    wrong["spec"]["matchConstraints"] = {"resourceRules": [rule, {**rule, "apiGroups": ["x.io"]}]}
    done = waddle("check", "-f", written(tmp_path, wrong, binding("b", "wrong")))
    assert done.returncode == 0
    message = 'its matchConstraints.resourceRules[0].resources names "pod": is pods meant?'
    assert done.stdout.count("is pods meant?") == 1
    assert f"ValidatingAdmissionPolicy/wrong: {message}" in done.stdout


def test_check_says_that_manifests_lack_the_api_server_s_defaults(tmp_path):
    documents = NAMED, binding("b", "named")
    done = waddle("check", "-f", written(tmp_path, *documents, pod()))
    message = "1 ValidatingAdmissionPolicy reviewed manifests without the API server's defaults"
    assert message in done.stderr
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}}
    assert message not in waddle("check", "-f", written(tmp_path, *documents, other)).stderr


def test_check_tells_of_many_parameters_and_of_what_is_undecided(tmp_path):
    cluster = {"apiVersion": "example.com/v1", "kind": "Limit", "data": {"max": "9"}}
    many = [{**cluster, "metadata": {"name": name}} for name in ("a", "b")]
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    document = {**LIMITED, "spec": {**LIMITED["spec"], "paramKind": kind}}
    reference = {"selector": {}, "parameterNotFoundAction": "Deny"}
    bound = binding("b", "limited", paramRef=reference)
    documents = (document, bound, *many, ASKING, binding("c", "asking"), pod())
    done = waddle("check", "-f", written(tmp_path, *documents))
    assert "its paramRef finds 2, and a request must satisfy each: a, b" in done.stdout
    assert "not decided: ValidatingAdmissionPolicy/asking" in done.stderr


def test_the_library_reviews_by_them():
    policies = Policies.load(
        values=[NAMED, binding("b", "named"), policy("true", name="idle"), binding("c", "idle")]
    )
    assert policies.constraints == (
        "ValidatingAdmissionPolicy/idle",
        "ValidatingAdmissionPolicy/named",
    )
    assert len(policies.unmatched) == 2
    (violation,) = policies.review(pod())
    assert violation.constraint == "ValidatingAdmissionPolicy/named"
    assert violation.details == {"reason": "Invalid", "binding": "b"}
    assert not policies.unmatched
    with pytest.raises(InvalidPoliciesError, match="no matching overload"):
        Policies.load(values=[policy("1 == 'a'"), binding()])
    with pytest.raises(InvalidPoliciesError, match="named: no binding names it"):
        Policies.load(values=[NAMED])
    with pytest.raises(NoVerdictError, match="authorizer"):
        Policies.load(values=[ASKING, binding("b", "asking")]).review(pod())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Policies.load(values=[NAMED, binding("b", "named"), LIMITED])
    assert [one.category for one in caught] == [PolicyWarning]


@pytest.mark.parametrize(
    ("matched", "code"),
    [
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, 0),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, 1),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, 0),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}, 1),
        ({"resourceRules": [{**PODS, "operations": ["DELETE"]}]}, 0),
        ({"excludeResourceRules": [{**PODS, "resourceNames": ["web"]}]}, 0),
        ({"excludeResourceRules": [{**PODS, "resourceNames": ["db"]}]}, 1),
    ],
)
def test_a_binding_narrows_what_its_policy_matches(tmp_path, matched, code):
    bound = binding("b", "named", matchResources=matched)
    assert reviewed(tmp_path, NAMED, bound, pod(a="c")).returncode == code
    found = Policies.load(values=[NAMED, bound]).review(pod(a="c"))
    assert len(found) == code


def test_the_library_reads_parameters_among_the_values():
    (violation,) = Policies.load(values=[LIMITED, LIMITED_BY, LIMITS]).review(pod())
    assert violation.message == "[binding here] at most 0"


def test_a_krm_function_reads_parameters_from_the_folder(tmp_path):
    written(tmp_path, LIMITED, LIMITED_BY, LIMITS)
    items = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [pod()]}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(items).encode()))
    done = waddle("krm", tmp_path, stdin=stdin)
    assert done.returncode == 1
    assert "[binding here] at most 0" in done.stdout
    assert "constraint: ValidatingAdmissionPolicy/limited" in done.stdout


def test_a_krm_function_reports_what_no_answer_decides(tmp_path):
    written(tmp_path, ASKING, binding("b", "asking"))
    items = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [pod()]}
    done = waddle("krm", tmp_path, stdin=io.TextIOWrapper(io.BytesIO(json.dumps(items).encode())))
    assert done.returncode == 1
    assert "not decided: ValidatingAdmissionPolicy/asking" in done.stderr
    assert "which no SubjectAccessReview among the files answers" in done.stderr


def suite(folder: Path, constraint: Json, **case: Any) -> Any:
    files = {"policy": LIMITED, "binding": constraint, "params": LIMITS, "pod": pod()}
    for name, document in files.items():
        (folder / f"{name}.yaml").write_text(json.dumps(document))
    test = {"name": "t", "template": "policy.yaml", "constraint": "binding.yaml", **case}
    document = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": [test]}
    (folder / "suite.yaml").write_text(json.dumps(document))
    return waddle("verify", str(folder / "suite.yaml"))


def test_a_suite_names_a_policy_and_a_binding(tmp_path):
    case = {
        "name": "c",
        "object": "pod.yaml",
        "inventory": ["params.yaml"],
        "assertions": [{"violations": 1, "message": "at most 0"}],
    }
    done = suite(tmp_path, LIMITED_BY, cases=[case])
    assert done.returncode == 0, done.stdout + done.stderr
    done = suite(tmp_path, LIMITED_BY, cases=[{**case, "assertions": [{"violations": "no"}]}])
    assert done.returncode == 1
    assert (
        suite(tmp_path, binding("b", "limited", validationActions=[]), invalid=True).returncode == 0
    )
    done = suite(tmp_path, binding("b", "other"), cases=[case])
    assert "names a policy of the test" in done.stdout + done.stderr


def test_recorded_admissions_are_decided_again_by_a_policy_that_is_not_there_yet(tmp_path):
    record = {
        "eventType": "decision",
        "enforcementPoint": "validation.gatekeeper.sh",
        "id": "1",
        "verdict": "allowed",
        "constraintsEvaluated": 0,
        "operation": "CREATE",
        "resourceGroup": "",
        "resourceAPIVersion": "v1",
        "resourceKind": "Pod",
        "resourceNamespace": "shop",
        "resourceName": "web",
        "object": pod(),
    }
    records = tmp_path / "records.jsonl"
    records.write_text(json.dumps(record) + "\n")
    file = written(tmp_path, NAMED, binding("b", "named"))
    done = waddle("check", "-f", file, "--decisions", records, "-o", "json")
    (change,) = json.loads(done.stdout)["decisions"]["changes"]
    assert change["added"][0][:2] == ["ValidatingAdmissionPolicy", "named"]


REVIEW = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SubjectAccessReview",
    "spec": {"user": "*", "resourceAttributes": {"verb": "get", "resource": "pods"}},
    "status": {"allowed": True},
}


@pytest.mark.parametrize(("allowed", "code"), [(True, 0), (False, 1)])
def test_subject_access_reviews_among_the_files_answer_the_authorizer(tmp_path, allowed, code):
    answer = {**REVIEW, "status": {"allowed": allowed}}
    done = reviewed(tmp_path, ASKING, binding("b", "asking"), answer, pod())
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    file = written(tmp_path, ASKING, binding("b", "asking"), answer, pod())
    assert f"{1 - allowed} then" in waddle("check", "-f", file).stdout


def test_an_answer_that_says_nothing_is_reported_with_its_line(tmp_path):
    broken = {**REVIEW, "spec": {"user": "ada"}}
    file = written(tmp_path, ASKING, binding("b", "asking"), broken)
    done = waddle("check", "-f", file)
    assert done.returncode == 1
    assert "spec.resourceAttributes: is required" in done.stdout
    question = {**REVIEW, "status": {}}  # a question, which is an object like any other
    assert "SubjectAccessReview" not in waddle("check", "-f", written(tmp_path, question)).stdout


def test_errors_that_are_ignored_are_reported_and_so_are_annotations(tmp_path):
    ignoring = policy("object.none == 1", failurePolicy="Ignore")
    annotated = policy(
        "true", name="a", auditAnnotations=[{"key": "k", "valueExpression": "string(object.kind)"}]
    )
    documents = (ignoring, binding(), annotated, binding("c", "a"), pod())
    done = reviewed(tmp_path, *documents)
    assert done.returncode == 0
    ignored = "[binding b] failurePolicy Ignore passes over expression 'object.none == 1'"
    assert f"ValidatingAdmissionPolicy/p: {ignored}" in done.stderr
    assert "ValidatingAdmissionPolicy/a: [binding c] audit annotation k: Pod" in done.stderr
    assert ignored in waddle("check", "-f", written(tmp_path, *documents)).stderr
    found = Policies.load(values=documents[:-1]).review(pod())
    assert not found
    assert len(found.remarks) == 2


def test_parameters_that_cannot_be_had_deny_whatever_the_actions_are(tmp_path):
    bound = binding(
        "b",
        "limited",
        validationActions=["Audit"],
        paramRef={"name": "x", "parameterNotFoundAction": "Deny"},
    )
    done = reviewed(tmp_path, LIMITED, bound, pod())
    assert done.returncode == 1
    assert "1 violation (1 deny)" in done.stdout


def test_parameters_of_another_version_are_none_and_reported(tmp_path):
    other = {**LIMITS, "apiVersion": "example.com/v2", "kind": "Limit"}
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    document = {**LIMITED, "spec": {**LIMITED["spec"], "paramKind": kind}}
    done = reviewed(tmp_path, document, LIMITED_BY, other, pod())
    assert done.returncode == 1
    assert (
        "finds no Limit of example.com/v1, which paramKind names; there are some of" in done.stderr
    )


def test_the_scope_of_parameters_is_that_of_their_kind(tmp_path):
    """A ConfigMap that names no namespace is in ``default``, and a definition says of others."""
    unplaced = {**LIMITS, "metadata": {"name": "limits"}}
    obj = pod()
    obj["metadata"]["namespace"] = "default"
    assert "at most 0" in reviewed(tmp_path, LIMITED, LIMITED_BY, unplaced, obj).stdout
    assert "no params found" in reviewed(tmp_path, LIMITED, LIMITED_BY, unplaced, pod()).stdout
    known = definition("Limit", "limits", "example.com", namespaced=True)
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    document = {**LIMITED, "spec": {**LIMITED["spec"], "paramKind": kind}}
    limits = {**unplaced, "apiVersion": "example.com/v1", "kind": "Limit"}
    done = reviewed(tmp_path, document, LIMITED_BY, limits, pod())
    assert "at most 0" in done.stdout
    done = reviewed(tmp_path, document, LIMITED_BY, limits, known, pod())
    assert "no params found" in done.stdout


@pytest.mark.parametrize("is_request", [False, True])
def test_a_namespace_has_the_parameters_in_itself(tmp_path, is_request):
    """As at the API server, for which a request about a Namespace is in that Namespace."""
    document = policy(
        "request.namespace == 'shop' && namespaceObject == null && params == null",
        rule={"resources": ["namespaces"]},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    bound = binding(paramRef={"name": "limits", "parameterNotFoundAction": "Allow"})
    obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    reviewed_one = obj
    if is_request:
        kind = {"group": "", "version": "v1", "kind": "Namespace"}
        resource = {"group": "", "version": "v1", "resource": "namespaces"}
        about = request(obj, kind=kind, resource=resource, name="shop", uid="")
        head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        reviewed_one = {**head, "request": about}
    limits = {**LIMITS, "metadata": {"name": "limits", "namespace": "other"}}
    assert reviewed(tmp_path, document, bound, limits, reviewed_one).returncode == 0
    limits["metadata"]["namespace"] = "shop"
    done = reviewed(tmp_path, document, bound, limits, reviewed_one)
    assert "failed expression: request.namespace == 'shop'" in done.stdout


def test_the_answer_with_fewest_open_parts_counts_and_of_these_one_that_denies(tmp_path):
    wide = {**REVIEW["spec"], "resourceAttributes": {"verb": "*", "resource": "*"}}
    open_ = {**REVIEW, "spec": wide}
    for narrow, code in ((False, 1), (True, 0)):
        answers = (open_, {**REVIEW, "status": {"allowed": narrow}})
        assert (
            reviewed(tmp_path, ASKING, binding("b", "asking"), *answers, pod()).returncode == code
        )
    both = ({**REVIEW, "status": {"allowed": one}} for one in (True, False))
    assert reviewed(tmp_path, ASKING, binding("b", "asking"), *both, pod()).returncode == 1


def test_a_suite_s_policy_file_may_have_answers(tmp_path):
    for name, documents in {
        "policy": (ASKING, REVIEW),
        "binding": (binding("b", "asking"),),
        "pod": (pod(),),
    }.items():
        text = "\n---\n".join(json.dumps(one) for one in documents)
        (tmp_path / f"{name}.yaml").write_text(text)
    case = {"name": "c", "object": "pod.yaml", "assertions": [{"violations": "no"}]}
    test = {"name": "t", "template": "policy.yaml", "constraint": "binding.yaml", "cases": [case]}
    document = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": [test]}
    (tmp_path / "suite.yaml").write_text(json.dumps(document))
    done = waddle("verify", str(tmp_path / "suite.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_does_nothing_is_reported_with_file_and_line(tmp_path):
    """Policies without a binding, bindings without a policy, and parameters that are not there."""
    lost, unbound = binding("lost", "nobody"), policy("true", name="unbound")
    file = written(tmp_path, unbound, lost, LIMITED, LIMITED_BY)
    done = waddle("check", "-f", file)
    assert done.returncode == 0
    texts = Path(file).read_text().split("\n---\n")
    begins = [1]
    for text in texts:
        begins.append(begins[-1] + text.count("\n") + 2)
    for at, message in enumerate(
        (
            "ValidatingAdmissionPolicy/unbound: no binding names it, so nothing is reviewed by it",
            "ValidatingAdmissionPolicyBinding/lost: there is no ValidatingAdmissionPolicy nobody",
        )
    ):
        assert f"warning: {file}:{begins[at]}: {message}" in done.stdout
    assert f"{file}:{begins[3]}: ValidatingAdmissionPolicyBinding/here: its paramRef" in done.stdout


def test_a_suite_names_the_file_that_is_missing(tmp_path):
    suite(tmp_path, LIMITED_BY)
    (tmp_path / "binding.yaml").unlink()
    done = waddle("verify", str(tmp_path / "suite.yaml"))
    assert done.returncode == 1
    assert str(tmp_path / "binding.yaml") in done.stdout
    assert "No such file or directory" in done.stdout


def test_an_expression_beyond_its_cost_refuses_and_says_so(tmp_path):
    names = "object.spec.containers"
    loops = "".join(f"{names}.all({one}, " for one in "abcd")
    dear = policy(f"{loops}a.name + b.name + c.name + d.name != ''{')' * 4}", name="dear")
    many = pod()
    many["spec"]["containers"] = [{"name": f"c{n}", "image": "x"} for n in range(60)]
    done = reviewed(tmp_path, dear, binding("b", "dear"), many)
    assert done.returncode == 1
    assert "cost limit exceeded" in done.stdout
