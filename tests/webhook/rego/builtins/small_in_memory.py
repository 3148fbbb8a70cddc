"""Every built-in, with values that are small in memory and enormous when written, in a process.

``python -m tests.webhook.rego.builtins.small_in_memory`` calls each built-in with such a value in
each operand's place, and prints a line of JSON before and after each call: a call that hangs, or
takes more than it may, is the last one named.
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

from webhook.rego.builtins import families  # noqa: F401  # registers every built-in
from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.values import RegoObject, RegoSet, lazy_set
from webhook.rego.types import AnyOf, ArrayType, ObjectType, Scalar, SetType

DEPTH = 40

CPU_SECONDS = 120
"""For all calls: far more than they need, and an end for one that hangs."""

MEMORY_BYTES = 64 << 20
"""The memory beyond that before the first call, in bytes."""


def arrays():
    """Each holds the one before it twice."""
    value = ["aaaaaaaa"]
    for _ in range(DEPTH):
        value = [value, value]
    return value


def objects():
    """The same of objects."""
    value = {"a": "aaaaaaaa"}
    for _ in range(DEPTH):
        value = {"a": value, "b": value}
    return value


def sets():
    """Sets in arrays; of a set in a set there are no two."""
    value = lazy_set(["aaaaaaaa"])
    for number in range(DEPTH):
        value = lazy_set([[value, value], number])
    return value


def other_keys():
    """Objects whose keys are no strings."""
    value = RegoObject([(1, "aaaaaaaa")])
    for _ in range(DEPTH):
        value = RegoObject([(1, value), (2, value)])
    return value


def schemas():
    """A JSON schema that names itself by its parts."""
    value = {"type": "string"}
    for _ in range(DEPTH):
        value = {"type": "object", "properties": {"a": value, "b": value}}
    return value


def graphs():
    """Vertices that are such values themselves."""
    return {"a": [arrays()], "b": [objects()]}


MADE = {
    "array": (arrays, lambda: [sets()], lambda: [objects()], lambda: [[arrays()], [arrays()]]),
    "object": (
        objects,
        other_keys,
        schemas,
        graphs,
        lambda: {"op": "add", "path": "/a", "value": arrays()},
        lambda: {"x": sets()},
    ),
    "set": (sets, lambda: lazy_set([arrays(), 1]), lambda: lazy_set([objects(), objects()])),
    "string": (lambda: "a", lambda: "{{.}}{{.a}}{{range .}}{{.}}{{end}}"),
    "number": (lambda: 1,),
    "boolean": (lambda: True,),
    "null": (lambda: None,),
}

PLAIN = {
    "array": lambda: ["a"],
    "object": lambda: {"a": "b"},
    "set": lambda: RegoSet(["a"]),
    "string": lambda: "%v",
    "number": lambda: 1,
    "boolean": lambda: True,
    "null": lambda: None,
}


BESIDES = {
    "json.marshal_with_options": lambda: [arrays(), {"pretty": True}],
    "json.patch": lambda: [
        {"a": arrays()},
        [{"op": "test", "path": "/a", "value": arrays()}],
    ],
    "object.union_n": lambda: [[objects(), objects()]],
    "providers.aws.sign_req": lambda: [
        {"method": "put", "url": "http://example.com", "body": arrays()},
        {
            "aws_service": "s3",
            "aws_access_key": "a",
            "aws_secret_access_key": "b",
            "aws_region": "r",
        },
        1,
    ],
}
"""Operands that a built-in's declaration does not tell."""


def kinds(operand):
    """The kinds that an operand may have."""
    if isinstance(operand, Scalar):
        return [operand.name]
    if isinstance(operand, ArrayType):
        return ["array"]
    if isinstance(operand, ObjectType):
        return ["object"]
    if isinstance(operand, SetType):
        return ["set"]
    if isinstance(operand, AnyOf) and operand.members:
        return [kind for member in operand.members for kind in kinds(member)]
    return ["array", "object", "set", "string"]


def cases(builtin, *, few=False):
    """Lists of operands, one of which is such a value; and with all of them."""
    if builtin.name in BESIDES:
        yield BESIDES[builtin.name]()
    given = list(builtin.operands) or ([builtin.variadic] if builtin.variadic else [])
    for position, operand in enumerate(given):
        for kind in dict.fromkeys(kinds(operand)):
            for make in MADE[kind][: 3 if few else None]:
                others = [
                    [PLAIN[other]() for other in dict.fromkeys(kinds(item))] for item in given
                ]
                for choice in range(1 if few else max(map(len, others))):
                    operands = [found[min(choice, len(found) - 1)] for found in others]
                    operands[position] = make()
                    yield operands
    if len(given) > 1:
        for number in range(4):
            of_each = [MADE[kinds(item)[0]] for item in given]
            yield [makers[min(number, len(makers) - 1)]() for makers in of_each]


def call(builtin, operands):
    """Returns the result of a call."""
    context = EvaluationContext(seed=1, now_ns=1, print_=lambda *_: None)
    given = [context, *operands] if builtin.context else operands
    try:
        found = builtin.function(*given)
        if builtin.relation:
            for _ in found:
                pass
    except EvaluationError as error:
        return error.code
    except BuiltinError:
        return "undefined"
    except RecursionError:
        return "eval_cancel_error"
    return "answered"


def main():
    """Call them all."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    used = int(pages) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    for name in sorted(BUILTINS):
        builtin = BUILTINS[name]
        if name == "http.send":
            continue  # it would leave the process; its parts are those of others
        for number, operands in enumerate(cases(builtin)):
            print(json.dumps([name, number]), flush=True)
            began = time.process_time()
            outcome = call(builtin, operands)
            print(json.dumps([name, number, outcome, time.process_time() - began]), flush=True)


if __name__ == "__main__":
    main()
