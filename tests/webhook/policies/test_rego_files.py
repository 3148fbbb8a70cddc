"""Rego and data from files: what is read, where it comes to stand, and what is refused."""

import json

import pytest

from webhook.policies.rego_bundles import load_bundles
from webhook.policies.rego_files import LoadErrors, RegoFiles, load


def test_folders_say_where_documents_stand(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "top.json").write_text('{"one": 1}')
    (tmp_path / "a" / "b" / "x.yaml").write_text("two: 2\n")
    (tmp_path / "a" / "p.rego").write_text("package p")
    (tmp_path / "a" / "notes.txt").write_text("not read")

    found = load([str(tmp_path)])

    assert found.data == {"one": 1, "a": {"b": {"two": 2}}}
    assert [module.file for module in found.modules] == [str(tmp_path / "a" / "p.rego")]


def test_a_prefix_says_where_a_file_stands(tmp_path):
    (tmp_path / "x.json").write_text("[1]")

    assert load([f"a.b:{tmp_path / 'x.json'}"]).data == {"a": {"b": [1]}}


def test_a_named_file_may_be_of_any_kind(tmp_path):
    (tmp_path / "policy.txt").write_text("package p")
    (tmp_path / "data.txt").write_text('{"a": 1}')

    found = load([str(tmp_path / "policy.txt"), str(tmp_path / "data.txt")])

    assert (len(found.modules), found.data) == (1, {"a": 1})


def test_bundles_take_data_files_alone(tmp_path):
    (tmp_path / "data.json").write_text('{"a": 1}')
    (tmp_path / "other.json").write_text('{"b": 1}')
    files = RegoFiles()

    load_bundles([str(tmp_path)], files, version="v1", ignore=())

    assert files.data == {"a": 1}
    assert load([str(tmp_path)], documents=False).data == {}


def test_patterns_pass_over_names_below_a_path(tmp_path):
    for name in ("a_test.rego", "a.rego", ".hidden.rego"):
        (tmp_path / name).write_text("package p")

    found = load([str(tmp_path)], ignore=["*_test.rego", ".*"])

    assert [module.file for module in found.modules] == [str(tmp_path / "a.rego")]


def test_every_faulty_file_is_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("[1]")
    (tmp_path / "c.yaml").write_text("a: [\n")
    (tmp_path / "d.rego").write_text("package")
    (tmp_path / "e.json").write_text('{"x": {"y": 1}}')
    (tmp_path / "f.json").write_text('{"x": {"y": 2}}')

    with pytest.raises(LoadErrors) as raised:
        load([str(tmp_path), str(tmp_path / "missing")])

    messages = raised.value.messages
    assert [name for name in "abcdf" if any(f"/{name}." in one for one in messages)] == list(
        "abcdf"
    )
    assert any("conflicting values at data.x.y" in one and "e.json" in one for one in messages)
    assert any("missing" in one for one in messages)
    assert str(raised.value).startswith("6 errors occurred during loading:\n")


def test_a_folder_with_one_faulty_source_tells_of_one_error_once(tmp_path):
    (tmp_path / "a.rego").write_text("package p\nq {")

    with pytest.raises(LoadErrors) as raised:
        load([str(tmp_path)])

    text = str(raised.value)
    assert text.startswith(
        f"1 error occurred during loading: {tmp_path}/a.rego:2: rego_parse_error"
    )


def test_each_error_of_a_faulty_source_is_counted(tmp_path):
    (tmp_path / "a.rego").write_text("package p\nq { true }\nr { true }")

    with pytest.raises(LoadErrors) as raised:
        load([str(tmp_path)])

    assert str(raised.value).startswith("2 errors occurred during loading:\n")


def test_modules_are_in_the_order_of_their_paths(tmp_path):
    for folder in ("go", "go-b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.rego").write_text("package p")

    found = load([str(tmp_path)])

    names = [str(tmp_path / folder / "x.rego") for folder in ("go-b", "go")]
    assert [module.file for module in found.modules] == names


def test_a_link_that_leads_back_is_reported(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "back").symlink_to(tmp_path)

    with pytest.raises(LoadErrors, match="a/back: a link leads back"):
        load([str(tmp_path)])


def test_a_module_below_two_of_the_folders_is_read_once(tmp_path):
    """The module's documents have a place below each of the folders."""
    inner = tmp_path / "policies" / "inner"
    inner.mkdir(parents=True)
    (inner / "m.rego").write_text("package a\ndefault p := 1")
    (inner / "d.json").write_text('{"x": 1}')

    found = load([str(tmp_path / "policies"), str(inner)])

    assert [module.file for module in found.modules] == [str(inner / "m.rego")]
    assert found.data == {"inner": {"x": 1}, "x": 1}


def test_a_file_that_is_named_twice_is_read_once(tmp_path):
    (tmp_path / "data.json").write_text(json.dumps({"a": 1}))

    assert load([str(tmp_path), str(tmp_path / "data.json")]).data == {"a": 1}
