"""The table of built-ins: complete, declared as OPA declares, operands checked."""

import json
import subprocess

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.rego.builtins.calling import call, fault, members
from webhook.rego.builtins.registry import BUILTINS, make_builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import Numeral
from webhook.rego.types import NUMBER, STRING, type_from_json, type_text


def test_the_table_is_that_of_opas_capabilities(program):
    """Names, operands, results and properties are OPA's, deprecated built-ins included."""
    finished = subprocess.run(
        [program("opa"), "capabilities", "--current"],
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    declared = {}
    for builtin in json.loads(finished.stdout)["builtins"]:
        properties = (
            builtin.get("infix", ""),
            builtin.get("deprecated", False),
            builtin.get("relation", False),
            not builtin.get("nondeterministic", False),
        )
        declared[builtin["name"]] = (type_text(type_from_json(builtin["decl"])), *properties)
    ours = {
        builtin.name: (
            type_text(builtin.type),
            builtin.infix,
            builtin.deprecated,
            builtin.relation,
            builtin.deterministic,
        )
        for builtin in BUILTINS.values()
    }
    assert ours == declared


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("startswith", (1, "a"), "type: operand 1 must be string but got number"),
        ("startswith", ("a", None), "type: operand 2 must be string but got null"),
        ("array.concat", ([], {}), "type: operand 2 must be array but got object"),
        ("object.keys", ([],), "type: operand 1 must be object but got array"),
        ("and", (members(), True), "type: operand 2 must be set but got boolean"),
        ("abs", ("x",), "type: operand 1 must be number but got string"),
        ("abs", (True,), "type: operand 1 must be number but got boolean"),
        (
            "count",
            (1,),
            "type: operand 1 must be one of {array, object, set, string} but got number",
        ),
        (
            "concat",
            (",", members("a", 1)),
            "type: operand 2 must be set of strings but got set containing number",
        ),
    ],
)
def test_a_wrong_operand_is_named_by_position_and_type(name, operands, message):
    assert fault(name, *operands) == message


def test_a_number_that_keeps_its_text_is_a_number():
    """Subclasses of float pass the check that the fast path fails."""
    assert call("abs", Numeral("-1.0")) == 1


def test_a_callers_own_builtin_is_checked_like_the_others():
    """A built-in outside of the table gets the same wrapper."""
    own = make_builtin("own.repeat", [STRING, NUMBER], STRING, lambda text, n: text * n)
    assert own.function("ab", 2) == "abab"
    with pytest.raises(BuiltinError, match="operand 2 must be number but got string"):
        own.function("ab", "2")
