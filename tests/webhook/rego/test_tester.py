"""Unit tests written in Rego: which are found, and how they end."""

import pytest

from webhook.rego.engine import CompileOptions
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module
from webhook.rego.tester import UnitTests


def results(*sources, data=None, selects=bool, seconds_max=60.0):
    modules = [parse_module(source, f"m{i}.rego") for i, source in enumerate(sources)]
    found = UnitTests(modules, data or {}, selects=selects).run(seconds_max)
    return {f"{one.package}.{one.name}": one for one in found}


def outcomes(*sources, **options):
    found = results(*sources, **options)
    return {
        name: "error" if one.error else "skip" if one.skipped else "fail" if one.failed else "pass"
        for name, one in found.items()
    }


def test_only_true_passes():
    source = """package a
    test_true if 1 == 1
    test_false if 1 == 2
    test_number := 1
    test_set contains 1
    todo_test_later if true
    helper if true"""

    assert outcomes(source) == {
        "data.a.test_true": "pass",
        "data.a.test_false": "fail",
        "data.a.test_number": "fail",
        "data.a.test_set": "fail",
        "data.a.todo_test_later": "skip",
    }


def test_tests_of_one_name_are_distinguished_across_files():
    first = "package a\ntest_x if true\ntest_x if false"
    second = "package a\ntest_x if true"

    assert outcomes(first, second) == {
        "data.a.test_x": "pass",
        "data.a.test_x#01": "fail",
        "data.a.test_x#02": "pass",
    }


def test_packages_and_rules_may_have_quoted_parts():
    source = """package q["b-c"].d
    test_one["x y"] if true
    p.q.test_deep if true"""

    assert list(outcomes(source)) == [
        'data.q["b-c"].d.test_one',
        'data.q["b-c"].d.p.q.test_deep',
    ]


def test_a_case_without_an_answer_has_failed():
    source = """package a
    test_cases[case.note] if {
        some case in [{"note": "fine", "x": 1}, {"note": "wrong", "x": 2}]
        y := case.x
        y == 1
    }
    test_nested[x][y] if {
        some x in ["p", "q"]
        some y in [1, {"k": "v"}]
        x != "q"
    }"""

    found = results(source)

    cases = found["data.a.test_cases"].cases
    assert {name: case.failed for name, case in cases.items()} == {"fine": False, "wrong": True}
    assert found["data.a.test_cases"].failed
    nested = found["data.a.test_nested"].cases
    assert {name: case.failed for name, case in nested["q"].cases.items()} == {
        "1": True,
        '{"k":"v"}': True,
    }
    assert not nested["p"].failed


def test_a_case_may_be_named_by_a_text_made_of_values():
    source = """package a
    test_cases[$"{note}-{count(items)}"] if {
        some items in [[], ["x"]]
        some [note, number] in [["one", 1], ["none", 0]]
        count(items) == number
    }"""

    cases = results(source)["data.a.test_cases"].cases

    assert {name: case.failed for name, case in cases.items()} == {
        "one-0": True,
        "one-1": False,
        "none-0": False,
        "none-1": True,
    }


def test_what_a_test_prints_is_kept():
    source = 'package a\ntest_x if { print("x is", [1]); print(input.y); false }'

    (found,) = results(source).values()

    assert found.output == "x is [1]\n<undefined>\n"


def test_an_error_is_no_failure():
    source = "package a\ntest_x := y if { some y in [1, 2] }\ntest_y if true"

    found = results(source)

    error = found["data.a.test_x"].error
    assert error is not None
    assert error.code == "eval_conflict_error"
    assert found["data.a.test_y"].passed


def test_a_test_that_takes_too_long_ends():
    source = "package a\ntest_x if { some i in numbers.range(1, 1000000); i < 0 }\ntest_y if true"

    found = outcomes(source, seconds_max=0.0)

    assert found["data.a.test_x"] == "error"


def test_a_filter_sees_package_and_name():
    source = "package a\ntest_x if true\ntest_y if true"

    assert list(outcomes(source, selects=lambda name: name.endswith("a.test_y"))) == [
        "data.a.test_y"
    ]


def test_base_documents_are_data_and_no_rule_may_stand_in_their_place():
    source = "package a\ntest_x if data.cfg.name == 1"

    assert outcomes(source, data={"cfg": {"name": 1}}) == {"data.a.test_x": "pass"}
    with pytest.raises(RegoErrors, match="conflicting rule for data path a/test_x found"):
        outcomes(source, data={"a": {"test_x": 1}})


def test_a_function_that_many_tests_need_is_written_once():
    source = "package a\nf(x) := max([y | some z in [1, x]; y := z + 1])\n" + "\n".join(
        f"test_{i} if {{ f({i + 5}) == {i + 6}; f(input.x) == 1 with input.x as 0 }}"
        for i in range(20)
    )
    written = []

    def compile_parts(parts):
        written.extend(parts)
        return tuple(compile(part, "", "exec") for part in parts)

    module = parse_module(source)
    UnitTests([module], {}, options=CompileOptions(compile_parts=compile_parts))

    assert len([part for part in written if part.startswith("def f")]) == 1
