"""``waddle verify`` runs Kyverno's tests, and says what is wrong with them."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from webhook.cli.main import waddle

POLICY = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "object.spec.containers.all(c, !c.image.endsWith(':latest'))", message: use a version}
"""

OBJECTS = """\
apiVersion: v1
kind: Pod
metadata: {name: good}
spec: {containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad, namespace: shop}
spec: {template: {spec: {containers: [{name: c, image: "nginx:latest"}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: good}
spec: {}
"""

TEST = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: images}
policies: [../policy.yaml]
resources: [objects.yaml]
results:
- {policy: no-latest, kind: Pod, resources: [good], result: pass}
- {policy: no-latest, kind: Deployment, resources: [shop/bad], result: fail}
- {policy: no-latest, kind: Service, resources: [good], result: skip}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".kyverno-test").mkdir()
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / ".kyverno-test/objects.yaml").write_text(OBJECTS)
    (tmp_path / ".kyverno-test/kyverno-test.yaml").write_text(TEST)
    return tmp_path


def verify(folder: Path, *more: str) -> tuple[int, str]:
    run = CliRunner().invoke(waddle, ["verify", str(folder), *more], standalone_mode=False)
    return run.return_value, run.output


def test_policies_their_controllers_and_what_they_are_not_about(folder: Path) -> None:
    code, output = verify(folder, "-v")
    assert code == 0, output
    assert "1 suite, 1 test, 3 cases: 3 passed, 0 failed" in output


def test_what_differs_is_reported_with_the_policy_s_message(folder: Path) -> None:
    file = folder / ".kyverno-test/kyverno-test.yaml"
    file.write_text(TEST.replace("result: fail", "result: pass"))
    code, output = verify(folder)
    assert code == 1
    assert "expected pass, got fail: use a version" in output


def test_a_name_selects_what_runs(folder: Path) -> None:
    assert verify(folder, "--run", "nothing")[0] == 2
    assert verify(folder, "--run", "no-latest")[0] == 0


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("objects.yaml", "none.yaml", "resources[0]: "),
        ("../policy.yaml", "none.yaml", "policies[0]: "),
        ("result: skip", "result: perhaps", "results[2].result: 'perhaps' is none of "),
        ("[shop/bad]", "[other/bad]", "no Deployment other/bad is in the files of resources"),
        ("policy: no-latest, kind: Pod", "policy: other, kind: Pod", "no policy other is in"),
    ],
)
def test_a_test_that_names_what_is_not_there_says_where(
    folder: Path, written: str, instead: str, message: str
) -> None:
    file = folder / ".kyverno-test/kyverno-test.yaml"
    file.write_text(TEST.replace(written, instead))
    code, output = verify(folder)
    assert code == 1
    assert message in output


def test_an_error_in_a_rule_s_expression_is_the_failure_that_kyverno_says(folder: Path) -> None:
    rule = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-latest}
spec:
  rules:
  - name: images
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {cel: {expressions: [{expression: object.spec.none == 1}]}}
"""
    results = """\
resources: [objects.yaml]
results:
- {policy: no-latest, rule: images, kind: Pod, resources: [good], result: fail}
"""
    code, output = written(folder, rule, HEAD + results)
    assert code == 0, output
    code, output = written(folder, rule, HEAD + results.replace("rule: images", "rule: other"))
    assert code == 1
    assert "policy no-latest has no rule other; it has no-latest/images" in output


def test_a_test_that_cannot_be_read_costs_no_other(folder: Path) -> None:
    other = folder / "other/kyverno-test.yaml"
    other.parent.mkdir()
    other.write_text(HEAD + "results: []\n")
    code, output = verify(folder)
    assert code == 1
    assert f"{other}:4: results: it is empty" in output
    other.unlink()
    assert verify(folder)[0] == 0


@pytest.mark.parametrize("kind", ["ClusterPolicy", "GeneratingPolicy", "ImageValidatingPolicy"])
def test_kinds_that_are_not_run_are_named(folder: Path, kind: str) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("ValidatingPolicy", kind))
    code, output = verify(folder)
    assert code == 1
    assert f"{kind} no-latest is not run: " in output


def test_a_policy_that_cannot_be_used_fails_its_cases_and_says_where(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("c.image", "d.image"))
    code, output = verify(folder)
    assert code == 1
    assert "spec.validations[0].expression: ERROR: " in output


def test_namespaces_and_operations_come_from_the_file_of_variables(folder: Path) -> None:
    (folder / ".kyverno-test/kyverno-test.yaml").write_text(
        TEST.replace("results:", "variables: values.yaml\nresults:").replace("fail", "pass")
    )
    (folder / "policy.yaml").write_text(
        POLICY.replace("operations: [CREATE]", "operations: [UPDATE]").replace(
            "object.spec.containers.all(c, !c.image.endsWith(':latest'))",
            "request.namespace == 'default' || namespaceObject.metadata.labels.team == 'a'",
        )
    )
    (folder / ".kyverno-test/values.yaml").write_text(
        "kind: Value\n"
        "namespaceSelector: [{name: shop, labels: {team: a}}]\n"
        "globalValues: {request.operation: UPDATE}\n"
    )
    code, output = verify(folder)
    assert code == 0, output
    assert "3 cases: 3 passed, 0 failed" in output


EXCEPTION = """\
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: shop, namespace: shop}
spec:
  policyRefs: [{name: no-latest, kind: ValidatingPolicy}]
  matchConditions: [{name: shop, expression: "object.metadata.namespace == 'shop'"}]
"""


def test_exceptions_of_the_test_excuse(folder: Path) -> None:
    file = folder / ".kyverno-test/kyverno-test.yaml"
    with_exceptions = TEST.replace("results:", "exceptions: [e.yaml]\nresults:")
    file.write_text(with_exceptions.replace("result: fail", "result: skip"))
    (folder / ".kyverno-test/e.yaml").write_text(EXCEPTION)
    assert verify(folder)[0] == 0
    (folder / ".kyverno-test/e.yaml").write_text(
        EXCEPTION.replace("object.metadata.namespace == 'shop'", "nothing")
    )
    code, output = verify(folder)
    assert code == 1
    assert "PolicyException shop: spec.matchConditions[0].expression: ERROR: " in output


def written(folder: Path, policy: str, test: str, **files: str) -> tuple[int, str]:
    """The outcome of a test of one policy, with more files beside it."""
    (folder / "policy.yaml").write_text(policy)
    for name, text in files.items():
        (folder / ".kyverno-test" / f"{name}.yaml").write_text(text)
    (folder / ".kyverno-test/kyverno-test.yaml").write_text(test)
    return verify(folder, "-v")


HEAD = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\npolicies: [../policy.yaml]\n"


def test_a_result_s_operation_is_played(folder: Path) -> None:
    policy = POLICY.replace("[CREATE]", "[DELETE]").replace("object.spec", "oldObject.spec")
    results = """\
resources: [objects.yaml]
results:
- {policy: no-latest, kind: Pod, operation: DELETE, resources: [good], result: pass}
- {policy: no-latest, kind: Pod, resources: [good], result: skip}
"""
    code, output = written(folder, policy, HEAD + results)
    assert code == 0, output
    code, output = written(folder, policy, HEAD + results.replace("DELETE", "LATER"))
    assert code == 1
    assert "results[0].operation: 'LATER' is none of CONNECT, CREATE, " in output


def test_documents_are_reviewed_by_mode_json_and_a_file_may_hold_several_tests(
    folder: Path,
) -> None:
    policy = """\
apiVersion: policies.kyverno.io/v1alpha1
kind: ValidatingPolicy
metadata: {name: private}
spec:
  evaluation: {mode: JSON}
  validations: [{expression: "!object.bucket.public"}]
"""
    one = "jsonPayloads: [good.yaml, bad.yaml]\nresults:\n"
    one += "- {policy: private, kind: '', resources: [good.yaml], result: pass}\n"
    one += "- {policy: private, kind: '', resources: [bad.yaml], result: fail}\n"
    two = "jsonPayload: good.yaml\nresults: [{policy: private, kind: '', result: pass}]\n"
    code, output = written(
        folder,
        policy,
        f"{HEAD}{one}---\n{HEAD}{two}",
        good="bucket: {public: false}",
        bad="bucket: {public: true}",
    )
    assert code == 0, output
    assert "2 suites, 2 tests, 3 cases: 3 passed" in output


def test_users_servers_entries_and_a_cluster_are_those_of_the_test(folder: Path) -> None:
    expression = (
        "request.userInfo.username == 'ada' && http.Get('https://a.test/x').body.ok"
        " && globalContext.Get('limits', '').max == 3"
        " && resource.get('v1', 'configmaps', 'default', 'own').data.a == 'b'"
    )
    policy = POLICY.replace(
        "object.spec.containers.all(c, !c.image.endsWith(':latest'))", expression
    )
    test = """\
resources: [objects.yaml]
userinfo: user.yaml
clusterResources: [cluster.yaml]
apiCallResponses: [{url: "https://a.test/x", response: {body: {ok: true}}}]
globalContextEntries: [{name: limits, data: {a: {max: 3}}, fieldPath: a}]
results: [{policy: no-latest, kind: Pod, resources: [good], result: pass}]
"""
    own = (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: default}, data: {a: b}}"
    )
    code, output = written(
        folder,
        policy,
        HEAD + test,
        user="{apiVersion: cli.kyverno.io/v1alpha1, kind: UserInfo, userInfo: {username: ada}}",
        cluster=f"{{kind: ClusterResource, spec: {{resources: [{own}]}}}}",
    )
    assert code == 0, output


def test_roles_of_old_rules_are_those_of_the_test(folder: Path) -> None:
    policy = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-latest}
spec:
  rules:
  - name: tag
    match: {any: [{resources: {kinds: [Pod]}}]}
    exclude: {any: [{clusterRoles: [cluster-admin]}]}
    validate: {message: use a version, pattern: {spec: {containers: [{image: "!*:latest"}]}}}
"""
    line = (
        "- {policy: no-latest, rule: autogen-tag, kind: Deployment, resources: [shop/bad], result: "
    )
    test = HEAD + "resources: [objects.yaml]\nresults:\n" + line
    code, output = written(folder, policy, test + "fail}\n")
    assert code == 0, output
    user = "{kind: UserInfo, userInfo: {username: ada}, clusterRoles: [cluster-admin]}"
    code, output = written(folder, policy, test + "skip}\nuserinfo: user.yaml\n", user=user)
    assert code == 0, output


def test_requests_of_http_are_reported_as_not_run(folder: Path) -> None:
    test = "httpPayloads: [x.json]\nresults: [{policy: no-latest, kind: '', result: pass}]\n"
    code, output = written(folder, POLICY, HEAD + test)
    assert code == 1
    assert "not run: requests of HTTP are for Kyverno's authorizer" in output


def test_a_rule_before_cel_is_tested_by_what_it_becomes(folder: Path) -> None:
    policy = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-latest}
spec:
  rules:
  - name: tag
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: use a version, pattern: {spec: {containers: [{image: "!*:latest"}]}}}
  - name: copy
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {spec: {a: b}}}
"""
    results = """\
resources: [objects.yaml]
results:
- {policy: no-latest, rule: tag, kind: Pod, resources: [good], result: pass}
- {policy: no-latest, rule: autogen-tag, kind: Deployment, resources: [shop/bad], result: fail}
"""
    code, output = written(folder, policy, HEAD + results)
    assert code == 0, output
    more = "- {policy: no-latest, rule: copy, kind: Pod, resources: [good], result: pass}\n"
    code, output = written(folder, policy, HEAD + results + more)
    assert code == 1
    assert "ClusterPolicy no-latest/copy is not run: it has `mutate`" in output
    of_namespace = policy.replace("ClusterPolicy", "Policy").replace(
        "{name:", "{namespace: team, name:", 1
    )
    code, output = written(folder, of_namespace, HEAD + results)
    assert code == 1
    assert output.count("expected fail, got skip") == 1
    of_namespace = of_namespace.replace("namespace: team", "namespace: shop")
    code, output = written(folder, of_namespace, HEAD + results)
    assert code == 0, output
    assert "--- PASS: no-latest/tag: Deployment shop/bad is to fail" in output


def test_what_a_policy_is_not_about_is_no_pass(folder: Path) -> None:
    file = folder / ".kyverno-test/kyverno-test.yaml"
    file.write_text(TEST.replace("result: skip", "result: pass"))
    code, output = verify(folder, "-v")
    assert code == 0, output
    assert "2 passed, 0 failed" in output


MUTATING = """\
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{spec: Object.spec{priorityClassName: "low"}}'
"""
PATCHED = """\
apiVersion: v1
kind: Pod
metadata: {name: good, namespace: default, annotations: {}}
spec: {priorityClassName: low, containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad, namespace: shop}
spec:
  template:
    spec: {priorityClassName: low, containers: [{name: c, image: "nginx:latest"}]}
"""
PATCHES = """\
resources: [objects.yaml]
results:
- {policy: no-latest, kind: Pod, resources: [good], result: pass, patchedResources: new.yaml}
- {policy: no-latest, kind: Deployment, result: pass, patchedResource: new.yaml}
- {policy: no-latest, kind: Service, result: skip}
"""


def test_what_a_mutating_policy_makes_is_compared_with_a_file(folder: Path) -> None:
    code, output = written(folder, MUTATING, HEAD + PATCHES, new=PATCHED)
    assert code == 0, output
    assert "3 cases: 3 passed" in output
    code, output = written(folder, MUTATING, HEAD + PATCHES, new=PATCHED.replace("low", "high"))
    assert code == 1
    file = folder / ".kyverno-test/kyverno-test.yaml"
    assert f"{file}:6: results[0].patchedResources: the mutated object is not the one " in output
    assert '[{"op":"replace","path":"/spec/priorityClassName","value":"high"}]' in output


def test_an_object_that_the_file_lacks_is_left_out_unless_it_must_be_there(folder: Path) -> None:
    new = PATCHED.replace("name: good", "name: other")
    code, output = written(folder, MUTATING, HEAD + PATCHES, new=new)
    assert code == 0, output
    assert "2 passed, 0 failed, 1 skipped" in output
    must = PATCHES.replace("new.yaml}", "new.yaml, failOnMissingResources: true}")
    code, output = written(folder, MUTATING, HEAD + must, new=new)
    assert code == 1
    assert "results[0].patchedResources: new.yaml has no v1 Pod default good" in output


def test_a_mutating_policy_that_cannot_be_used_says_what_it_asks_for(folder: Path) -> None:
    policy = MUTATING + "  evaluation: {mutateExisting: {enabled: true}}\n"
    code, output = written(folder, policy, HEAD + PATCHES, new=PATCHED)
    assert code == 1
    assert "MutatingPolicy no-latest: spec.evaluation.mutateExisting: Waddle changes " in output


OWN = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-latest}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "object.spec.containers.all(c, c.image == params.data.image)", message: another}
"""
BOUND = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec:
  policyName: no-latest
  validationActions: [Deny]
  paramRef: {name: images, namespace: default, parameterNotFoundAction: Deny}
  matchResources: {namespaceSelector: {matchLabels: {team: a}}}
"""
OWN_RESULTS = """\
resources: [objects.yaml]
paramResources: [params.yaml]
variables: values.yaml
results:
- {policy: no-latest, kind: Pod, resources: [good], result: pass}
- {policy: no-latest, kind: Service, result: skip}
"""
VALUES = "{kind: Values, namespaceSelector: [{name: default, labels: {team: a}}]}"


def parameters(image: str) -> str:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: images, namespace: default}\n"
    return f"{head}data: {{image: '{image}'}}\n"


def test_policies_of_the_api_server_are_tested_with_bindings_and_parameters(folder: Path) -> None:
    def run(results: str, image: str, values: str = VALUES, policy: str = OWN + BOUND) -> str:
        test = HEAD + results
        code, output = written(folder, policy, test, params=parameters(image), values=values)
        return "" if code == 0 else output

    assert run(OWN_RESULTS, "nginx:1") == ""
    assert "expected pass, got fail: another" in run(OWN_RESULTS, "nginx:2")
    fails = OWN_RESULTS.replace("result: pass", "result: fail")
    assert run(fails, "nginx:2") == ""
    # The binding is about Namespaces of a team.
    skips = OWN_RESULTS.replace("result: pass", "result: skip")
    assert run(skips, "nginx:2", VALUES.replace("team: a", "team: b")) == ""
    scored = OWN.replace("{name: no-latest}", "{name: no-latest, annotations: {SCORED: 'false'}}")
    scored = scored.replace("SCORED", "policies.kyverno.io/scored")
    warns = OWN_RESULTS.replace("result: pass", "result: warn")
    assert run(warns, "nginx:2", policy=scored + BOUND) == ""
    broken = BOUND.replace("validationActions: [Deny]", "validationActions: [Refuse]")
    output = run(OWN_RESULTS, "nginx:1", policy=OWN + broken)
    assert "ValidatingAdmissionPolicyBinding b: spec.validationActions: " in output


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("  validationActions: [Deny]\n", "", 12, "spec.validationActions: is required"),
        (", parameterNotFoundAction: Deny", "", 12, "parameterNotFoundAction: is required"),
        ("operations: [CREATE], ", "", 1, "resourceRules[0].operations: is not a list of names"),
    ],
)
def test_what_the_api_server_requires_and_kyverno_does_not_is_a_warning(
    folder: Path, old: str, new: str, line: int, fault: str
) -> None:
    policy = OWN + BOUND
    assert old in policy
    policy = policy.replace(old, new)
    code, output = written(
        folder, policy, HEAD + OWN_RESULTS, params=parameters("nginx:1"), values=VALUES
    )
    assert code == 0, output
    assert f"policy.yaml:{line}: ValidatingAdmissionPolicy" in output
    assert "an API server would refuse it: spec." in output
    assert fault in output


def test_an_error_of_a_policy_is_reported_before_what_it_made(folder: Path) -> None:
    mutating = MUTATING.replace("MutatingPolicy", "MutatingAdmissionPolicy")
    mutating = mutating.replace("policies.kyverno.io/v1", "admissionregistration.k8s.io/v1")
    mutating += "  reinvocationPolicy: Never\n"
    broken = mutating.replace('"low"', "string(object.spec.none)")
    assert broken != mutating
    code, output = written(folder, broken, HEAD + PATCHES, new=PATCHED)
    assert code == 1
    assert "got error: " in output
    assert "no such key: none" in output


SCALED = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [GROUP], apiVersions: [v1], operations: [UPDATE], resources: [deployments/scale]}
  validations: [{expression: object.spec.replicas < 3, message: too many}]
"""
SCALE_RESULTS = """\
resources: [scale.yaml]
values:
  globalValues: {request.operation: UPDATE, request.oldObject.spec.replicas: 1}
  subresources:
  - parentResource: {group: apps, version: v1, kind: Deployment, name: deployments}
    subresource: {group: autoscaling, version: v1, kind: Scale, name: deployments/scale}
results:
- {policy: no-latest, kind: Scale, resources: [web], result: fail}
"""
SCALE = """\
apiVersion: autoscaling/v1
kind: Scale
metadata: {name: web, namespace: default}
spec: {replicas: 5}
"""


def test_a_subresource_is_of_the_group_of_what_it_belongs_to(folder: Path) -> None:
    policy = SCALED.replace("GROUP", "apps")
    code, output = written(folder, policy, HEAD + SCALE_RESULTS, scale=SCALE)
    assert code == 0, output
    assert ":5: values: request.oldObject.spec.replicas is not set: write it into the" in output
    policy = SCALED.replace("GROUP", "autoscaling")
    code, output = written(folder, policy, HEAD + SCALE_RESULTS, scale=SCALE)
    assert code == 1
    assert "expected fail, got skip" in output


TEAMS = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-latest}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod], annotations: {example.com/shared: "true"}}}]}
    preconditions:
      all:
      - {key: '{{ request.object.metadata.labels.team || "" }}', operator: Equals, value: a}
    validate: {message: not by team a, deny: {}}
"""
TEAM_RESULTS = """\
resources: [objects.yaml]
values:
  globalValues: {request.object.metadata.labels.team: a}
  policies:
  - name: no-latest
    resources:
    - {name: good, values: {request.object.metadata.annotations."example.com/shared": "true"}}
results:
- {policy: no-latest, rule: team, kind: Pod, resources: [good], result: fail}
"""


def test_values_are_set_in_objects_under_rules_of_a_clusterpolicy(folder: Path) -> None:
    """Each changes what is matched, or the precondition; a quoted field may have dots."""
    code, output = written(folder, TEAMS, HEAD + TEAM_RESULTS)
    assert code == 0, output
    assert "is not set" not in output
    for changed in ("labels.other: a", 'labels."team.x": a'):
        results = TEAM_RESULTS.replace("labels.team: a", changed)
        code, output = written(folder, TEAMS, HEAD + results)
        assert code == 1
        assert "expected fail, got skip" in output
    code, output = written(folder, TEAMS, HEAD + TEAM_RESULTS.replace("name: good", "name: else"))
    assert code == 1
    assert "expected fail, got skip" in output


def test_a_controller_without_what_a_pattern_asks_about_fails(folder: Path) -> None:
    """With failurePolicy Ignore it would be admitted, so that an error is told."""
    policy = TEAMS.partition("    match:")[0] + (
        "    match: {any: [{resources: {kinds: [Pod]}}]}\n"
        "    validate: {message: no team, pattern: {metadata: {labels: {team: a}}}}\n"
    )
    results = "resources: [odd.yaml]\nresults:\n"
    results += "- {policy: no-latest, rule: team, kind: Deployment, result: fail}\n"
    odd = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: odd}\n"
    code, output = written(folder, policy, HEAD + results, odd=odd)
    assert code == 0, output
    ignoring = policy.replace("spec:\n", "spec:\n  failurePolicy: Ignore\n", 1)
    code, output = written(folder, ignoring, HEAD + results, odd=odd)
    assert code == 1
    assert "got error: validations[0].expression resulted in error: no such key: spec" in output


@pytest.mark.parametrize("of", ["rules", "resources"])
def test_values_within_objects_are_not_set_and_a_warning_says_so(folder: Path, of: str) -> None:
    within = f"policies: [{{name: no-latest, {of}: [{{name: web, values: {{request.object.kind: X}}}}]}}]"
    results = SCALE_RESULTS.replace("request.oldObject.spec.replicas: 1", "other: 1")
    results = results.replace("values:\n", f"values:\n  {within}\n")
    code, output = written(folder, SCALED.replace("GROUP", "apps"), HEAD + results, scale=SCALE)
    assert code == 0, output
    assert "values: request.object.kind is not set: write it into the object" in output


def test_a_policy_without_a_binding_is_tested_by_all_that_it_matches(folder: Path) -> None:
    mutating = MUTATING.replace("policies.kyverno.io/v1", "admissionregistration.k8s.io/v1")
    mutating = mutating.replace("MutatingPolicy", "MutatingAdmissionPolicy")
    mutating += "  reinvocationPolicy: Never\n"
    results = PATCHES.replace("kind: Deployment, result: pass", "kind: Deployment, result: skip")
    code, output = written(folder, mutating, HEAD + results, new=PATCHED)
    assert code == 0, output
    code, output = written(folder, mutating, HEAD + results, new=PATCHED.replace("low", "high"))
    assert code == 1
    assert "the mutated object is not the one expected" in output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[objects.yaml]", "[a.yaml]", ":4: resources[0]: "),
        ("[objects.yaml]", "3", ":4: resources: write a list of files"),
        ("new.yaml}", "[new.yaml]}", ":6: results[0].patchedResources: write the name of one"),
        ("new.yaml}", "old.yaml}", ":6: results[0].patchedResources: "),
        ("[good]", "good", ":6: results[0].resources: write a list of names"),
        ("policy: no-latest, kind: Pod", "policy: x, kind: Pod", ":6: results[0].policy: no pol"),
        ("[good]", "[none]", ":6: results[0].resources: no Pod none is in the files"),
        ("patchedResources", "patchedRessources", ":6: results[0].patchedRessources: there is no "),
        ("resources: [objects.yaml]", "resource: [objects.yaml]", ":4: resource: there is no such"),
        ("result: skip", "result: soso", ":8: results[2].result: 'soso' is none of error, fail"),
    ],
)
def test_each_fault_of_a_test_names_its_line(
    folder: Path, old: str, new: str, message: str
) -> None:
    code, output = written(folder, MUTATING, HEAD + PATCHES.replace(old, new, 1), new=PATCHED)
    assert code == 1
    assert f"{folder / '.kyverno-test/kyverno-test.yaml'}{message}" in output
    if "a.yaml" in new or "old.yaml" in new:
        assert "No such file or directory; correct the name, or add the file" in output
