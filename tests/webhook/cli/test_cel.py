"""``waddle cel``: expressions checked and evaluated from the command line."""

import yaml

from tests.webhook.cli.in_process import waddle

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "d"},
    "spec": {"containers": [{"image": "a"}, {"image": "b"}]},
}


def test_the_value_of_an_expression_over_a_file_is_printed_as_json(tmp_path):
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(POD))
    run = waddle("cel", "eval", "--object", file, "object.spec.containers.map(c, c.image)")
    assert (run.returncode, run.stdout, run.stderr) == (0, '[\n  "a",\n  "b"\n]\n', "")


def test_an_old_object_alone_is_a_deletion(tmp_path):
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(POD))
    expression = "request.operation + ' ' + string(object == null) + ' ' + variables.anyObject.kind"
    run = waddle("cel", "eval", "--old-object", file, expression)
    assert run.stdout == '"DELETE true Pod"\n'


def test_what_json_lacks_is_shown_as_cel_shows_it():
    expression = (
        "{'d': dyn(duration('90m')), 't': dyn(int), 'u': dyn(1u), 'o': dyn(optional.of(b'a'))}"
    )
    run = waddle("cel", "eval", expression)
    assert yaml.safe_load(run.stdout) == {"d": "5400s", "t": "int", "u": 1, "o": "YQ=="}


def test_an_expression_without_a_value_says_why():
    run = waddle("cel", "eval", "object.x")
    assert (run.returncode, run.stdout, run.stderr) == (2, "", "no such key: x\n")


def test_a_check_tells_types_and_faults_with_their_place():
    run = waddle("cel", "check", "1 < 2", "1 == 'a'", "variables.mine == 1")
    assert run.returncode == 1
    assert run.stdout == "bool\n"
    assert run.stderr == (
        "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'\n"
        " | 1 == 'a'\n | ..^\n"
        "ERROR: <input>:1:10: undefined field 'mine'\n | variables.mine == 1\n | .........^\n"
    )
    assert waddle("cel", "check", "--variable", "mine", "variables.mine == 1").returncode == 0
