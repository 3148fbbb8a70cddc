"""Differences to OPA that are explained: exact ones, of exact built-ins.

Each entry says what the answers must look like to be passed over; anything else that the same
policies do is a difference. What is passed over is counted by its reason.
"""

import dataclasses
import re
from typing import Final

from tests.differential.agreement import Answer, Question, difference, ours, theirs
from tests.differential.oracle import Oracle

MESSAGES: Final = {
    "crypto.x509.parse_certificate_request": "our reader names less of Go's structure",
    "crypto.x509.parse_keypair": "OPA names the wrong operand",
    "rego.parse_module": "OPA names the wrong operand",
    "io.jwt.decode": "messages of Go's JSON reader",
    "io.jwt.decode_verify": "messages of Go's JSON reader",
    "io.jwt.encode_sign": "messages of Go's JSON reader",
    "io.jwt.encode_sign_raw": "messages of Go's JSON reader",
    "json.unmarshal": "messages of Go's number reader",
}
"""Built-ins of which both engines tell an error, in other words."""

CONFLICT: Final = ("eval", [("eval_conflict_error", "object keys must be unique")])

_UNBOUND: Final = re.compile(
    r"built-in function \w+ called with operand \d that requires evaluation"
)

_OBJECT: Final = re.compile(r"^(\w+)(?:\.\w+)*\[", re.MULTILINE)


def reason(oracle: Oracle, question: Question, mine: Answer, real: Answer) -> str:
    """Returns the reason why the answers may differ; empty if it is unknown."""
    if found := _of_messages(mine, real):
        return found
    if _calls(question, "net.lookup_ip_addr") and not mine[1]:
        return "no resolver is enabled here"
    if mine == CONFLICT and real[0] == "results" and _contradicts_itself(oracle, question):
        return "an object is computed whole, OPA only the key asked for"
    if real[0] == "eval" and _UNBOUND.match(real[1][0][1]):
        return "OPA evaluates a comprehension ahead, without its outer variable"
    if question.strict and _agree_otherwise(oracle, question):
        # OPA's index skips rules before their operands are looked at, and its order of evaluation
        # is its own: with strict built-in errors that decides which there is, or whether any.
        return "strict built-in errors come in another order"
    return ""


def _of_messages(mine: Answer, real: Answer) -> str:
    if mine[0] != "eval" or real[0] != "eval":
        return ""
    ((code, message),), ((other, text),) = mine[1], real[1]
    if code != other:
        return ""
    for name, why in MESSAGES.items():
        begins = re.compile(rf"{re.escape(name)}\b")
        if begins.match(message) and begins.match(text):
            return f"{name}: {why}"
    return ""


def _calls(question: Question, name: str) -> bool:
    pattern = re.compile(rf"\b{re.escape(name)}\(")
    return any(pattern.search(text) for text in (*question.modules, question.query))


def _contradicts_itself(oracle: Oracle, question: Question) -> bool:
    """Whether OPA sees the conflict as well, where it is asked for a partial object whole."""
    for module in question.modules:
        package = re.search(r"^package +([\w.]+)", module, re.MULTILINE)
        if package is None:
            continue
        for name in set(_OBJECT.findall(module)):
            whole = dataclasses.replace(question, query=f"data.{package[1]}.{name} = x")
            stage, errors = theirs(oracle, whole)
            if stage == "eval" and errors[0][0] == "eval_conflict_error":
                return True
    return False


def _agree_otherwise(oracle: Oracle, question: Question) -> bool:
    lenient = dataclasses.replace(question, strict=False)
    return not difference(lenient, ours(lenient), theirs(oracle, lenient))
