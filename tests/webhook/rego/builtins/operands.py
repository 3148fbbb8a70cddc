"""All tables, and every built-in on whatever operands: types that fit mostly, and all others."""

# ruff: noqa: I001  # all draw by one source of chance: in this order they draw the same
from tests.webhook.rego.builtins.calling import Case
from tests.webhook.rego.builtins import (
    operand_times,
    operand_patterns,
    operand_quantities,
    operand_documents,
    operand_texts,
)
from tests.webhook.rego.builtins.operand_cases import CASES, RANDOM
from webhook.rego.builtins.registry import BUILTINS

__all__ = [
    "CASES",
    "mixed_cases",
    "operand_documents",
    "operand_patterns",
    "operand_quantities",
    "operand_texts",
    "operand_times",
]

STRINGS = ['""', '"a"', '"abc"', '"aXbXc"', '"éàü日本"', '"X"', '" a b "', '"\\n\\t x"', '"a,b,,c"']
STRINGS += ['"ab"', '"ABC"', '"İßſ"', '"aaa"', '"1"', '"10"']
NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3.5",
    "1.0",
    "-2.7",
    "10",
    "100",
    "1e3",
    "99999999999999999999",
    "16",
]
OTHERS = ["null", "true", "[]", '["a"]', '["a","b",1]', "{}", '{"a":1}', '{"$set":["a","b"]}']
OTHERS += ['{"$set":[]}', '[3,1,"x",null,{"a":1},[1],2.5,true]', '{"a":{"b":[1,{"c":2}]}}']
OTHERS += [
    '{"$object":[[1,"a"],["b",2]]}',
    '{"$set":[{"$set":[1]},{"$set":[1,2]}]}',
    '["x",["a",0]]',
]
OTHERS += ['[{"a":1},{"a":{"b":2}},{"a":{"c":3}}]', '["/a/b","a"]', '{"a":"X","b":"Y"}']
ANYTHING = STRINGS + NUMBERS + OTHERS

# Chance, time, effects, and what the compiler replaces; the families that need keys or schemas
# have tests of their own.
ELSEWHERE = (
    *("print", "internal.", "time.now_ns", "rand.intn", "uuid.rfc4122", "net.lookup_ip_addr"),
    *("opa.runtime", "walk", "trace", "assign", "strings.render_template", "crypto.", "io.jwt."),
    *("graphql.", "http.send", "rego.", "providers.", "json.match_schema", "json.verify_schema"),
)
# A shift by 10^20 ends the real OPA itself.
NOT_HUGE = ("bits.lsh", "bits.rsh", "numbers.range", "numbers.range_step")


def _fitting(operand: str) -> list[str]:
    fits = {"string": STRINGS, "number": NUMBERS}.get(operand, ANYTHING)
    return fits if RANDOM.random() < 0.9 else ANYTHING


def mixed_cases(count: int = 25) -> list[Case]:
    """Cases of every built-in that is not :data:`ELSEWHERE`."""
    cases: list[Case] = []
    for name, builtin in BUILTINS.items():
        if name == "eq" or name.startswith(ELSEWHERE):
            continue
        if len(builtin.operands) == 1:
            cases.extend((name, (operand,)) for operand in ANYTHING)
            continue
        for _ in range(count):
            chosen = [RANDOM.choice(_fitting(str(operand))) for operand in builtin.operands]
            cases.append((name, tuple(chosen)))
    return [
        case for case in cases if case[0] not in NOT_HUGE or "99999999999999999999" not in case[1]
    ]
