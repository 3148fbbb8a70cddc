"""Compiled policies on disk: found again, never stale, never trusted when touched by others."""

import os
import signal

import pytest

from tests.patience import PATIENCE_SECONDS
from webhook.rego import code_cache
from webhook.rego.builtins.registry import make_builtin
from webhook.rego.code_cache import CodeCache, UnsafeDirectory, code_key
from webhook.rego.engine import CompileOptions, EvaluationContext, compile_rule
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module
from webhook.rego.types import NUMBER

SOURCE = """package a
import data.lib.f
violation contains {"msg": msg} if {
	some item in input.items
	not item in {"ok", "fine"}
	not regex.match("^a+$", item)
	msg := sprintf("%v is %v", [item, f(item)])
}
violation contains {"msg": m} if some m in numbers_of[{"k": 1.0}]
numbers_of[{"k": 1.0}] := ["one"] if input.one
"""
LIBRARY = 'package lib\nf(x) := {1: "a", true: x}[true]'
PATH = "data.a.violation"


def modules():
    return [parse_module(SOURCE, "a.rego", "v1"), parse_module(LIBRARY, "lib.rego", "v1")]


def answer(rule, input_value=None):
    found = rule.entry(
        input_value or {"items": ["ok", "aa", "b"], "one": 1}, {}, EvaluationContext()
    )
    return to_json(found)


EXPECTED = [{"msg": "b is b"}, {"msg": "one"}]


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "code"


def test_a_rule_from_the_cache_answers_as_the_one_that_was_compiled(directory, monkeypatch):
    cache = CodeCache(directory)
    assert answer(compile_rule(modules(), PATH, cache=cache)) == EXPECTED
    (file,) = directory.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr("webhook.rego.program.compile_rules", _must_not_compile)
    assert answer(compile_rule(modules(), PATH, cache=CodeCache(directory))) == EXPECTED


def test_what_parameters_decide_is_known_from_the_cache_too(directory, monkeypatch):
    cache = CodeCache(directory)
    source = "package a\np := [q, input.review]\nq := count(input.parameters)"
    for _ in range(2):
        rule = compile_rule([parse_module(source, "m.rego", "v1")], "data.a.p", cache=cache)
        known = rule.for_parameters([1, 2])
        assert known({"review": 1, "parameters": "others"}, {}, EvaluationContext()) == [2, 1]
        monkeypatch.setattr("webhook.rego.program.compile_rules", _must_not_compile)


def _must_not_compile(*_args):
    raise AssertionError("the cache was not used")


def test_errors_have_their_place_from_the_cache_too(directory):
    cache = CodeCache(directory)
    source = "package a\n\np := x if some x in [1, 2]"
    for _ in range(2):
        rule = compile_rule([parse_module(source, "m.rego", "v1")], "data.a.p", cache=cache)
        with pytest.raises(EvaluationError) as info:
            answer(rule)
        assert (info.value.location.file, info.value.location.row) == ("m.rego", 3)


def test_the_directory_is_made_private(directory):
    CodeCache(directory)
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_directory_that_is_open_to_others_is_refused(directory, mode):
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(UnsafeDirectory, match="0700"):
        CodeCache(directory)


def test_a_link_instead_of_a_directory_is_refused(directory, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    directory.symlink_to(elsewhere)
    with pytest.raises(UnsafeDirectory):
        CodeCache(directory)


def _flipped(raw, at):
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


DAMAGES = {
    "empty": lambda _raw: b"",
    "cut": lambda raw: raw[:-1],
    "longer": lambda raw: raw + b"x",
    "head only": lambda raw: raw[:40],
    "head": lambda raw: _flipped(raw, 3),
    "checksum": lambda raw: _flipped(raw, 30),
    "middle": lambda raw: _flipped(raw, len(raw) // 2),
    "end": lambda raw: _flipped(raw, len(raw) - 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_compiled_and_written_anew(directory, damage):
    cache = CodeCache(directory)
    compile_rule(modules(), PATH, cache=cache)
    (file,) = directory.iterdir()
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    assert cache.load(file.stem) is None
    assert answer(compile_rule(modules(), PATH, cache=cache)) == EXPECTED
    assert file.read_bytes() == sound


def test_a_file_that_is_a_link_is_not_followed(directory, tmp_path):
    cache = CodeCache(directory)
    compile_rule(modules(), PATH, cache=cache)
    (file,) = directory.iterdir()
    moved = tmp_path / "moved"
    file.rename(moved)
    file.symlink_to(moved)
    assert cache.load(file.stem) is None


def test_everything_that_the_code_depends_on_is_in_its_key(monkeypatch):
    base = code_key(modules(), PATH, CompileOptions())
    assert base == code_key(modules(), PATH, CompileOptions())
    double = {"double": make_builtin("double", [NUMBER], NUMBER, lambda x: 2 * x)}
    others = [
        code_key(modules()[:1], PATH, CompileOptions()),
        code_key(modules(), "data.a", CompileOptions()),
        code_key(modules(), PATH, CompileOptions(level="1.17.1")),
        code_key(modules(), PATH, CompileOptions(strict=True)),
        code_key(modules(), PATH, CompileOptions(disabled_builtins=frozenset({"http.send"}))),
        code_key(modules(), PATH, CompileOptions(builtins=double)),
        code_key([parse_module(SOURCE, "b.rego", "v1"), modules()[1]], PATH, CompileOptions()),
        code_key(
            [parse_module(f"{SOURCE}\n", "a.rego", "v1"), modules()[1]], PATH, CompileOptions()
        ),
    ]
    monkeypatch.setattr(code_cache, "engine_digest", lambda: "another engine or Python")
    others.append(code_key(modules(), PATH, CompileOptions()))
    assert len({base, *others}) == len(others) + 1


def test_what_does_not_load_is_not_cached(directory):
    cache = CodeCache(directory)
    with pytest.raises(RegoErrors):
        compile_rule([parse_module("package a\np := x", "m", "v1")], "data.a.p", cache=cache)
    assert list(directory.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_no_fault(directory, monkeypatch):
    cache = CodeCache(directory)

    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    assert answer(compile_rule(modules(), PATH, cache=cache)) == EXPECTED
    assert list(directory.iterdir()) == []


def test_only_so_many_files_are_kept(directory, monkeypatch):
    cache = CodeCache(directory)
    for number in range(5):
        source = f"package a\np := {number}"
        compile_rule([parse_module(source, "m", "v1")], "data.a.p", cache=cache)
    monkeypatch.setattr(code_cache, "MAX_FILES", 2)
    CodeCache(directory)
    assert len(list(directory.iterdir())) == 2


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o644, 0o640])
def test_a_file_that_is_open_to_others_is_compiled_and_written_anew(directory, mode):
    """A user who can read the file may have opened it when it was writable, too."""
    cache = CodeCache(directory)
    compile_rule(modules(), PATH, cache=cache)
    (file,) = directory.iterdir()
    file.chmod(mode)
    assert cache.load(file.stem) is None
    assert answer(compile_rule(modules(), PATH, cache=cache)) == EXPECTED
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_with_another_name_is_compiled_and_written_anew(directory, tmp_path):
    """By that name it may be open to others, as a folder of theirs is."""
    cache = CodeCache(directory)
    compile_rule(modules(), PATH, cache=cache)
    (file,) = directory.iterdir()
    file.rename(tmp_path / "elsewhere")
    os.link(tmp_path / "elsewhere", file)
    assert cache.load(file.stem) is None
    assert answer(compile_rule(modules(), PATH, cache=cache)) == EXPECTED
    assert file.stat().st_nlink == 1


def test_a_fifo_instead_of_a_file_is_waited_for_by_nobody(directory):
    """A process blocked in it for ever, where the alarm would end this test."""
    cache = CodeCache(directory)
    compile_rule(modules(), PATH, cache=cache)
    (file,) = directory.iterdir()
    file.unlink()
    os.mkfifo(file, 0o600)
    signal.alarm(int(PATIENCE_SECONDS))
    try:
        assert cache.load(file.stem) is None
        assert answer(compile_rule(modules(), PATH, cache=cache)) == EXPECTED
    finally:
        signal.alarm(0)
    assert file.is_file()
