"""Differences that docs/compatibility/mutation.md lists, each told so that nothing else is passed over.

What is suspected is taken out of the question, and both have to agree on the rest.
"""

import re
from collections.abc import Callable
from typing import Any

from tests.differential.mutators.agreement import difference, ours, theirs
from tests.differential.mutators.questions import Question
from tests.differential.oracle import Oracle

_INTEGER_KEY = re.compile(r":([ \t]*)([0-9]+)([ \t]*)\]")


def reason(oracle: Oracle, question: Question) -> str:
    """Returns the reason why the answers may differ; empty if it is unknown."""
    if "location" in question:
        return ""
    rest = question
    for why, without in _CAUSES:
        changed = without(question)
        if changed != question and _agree(oracle, changed):
            return why
        rest = without(rest)
    return "several of these" if rest != question and _agree(oracle, rest) else ""


def _agree(oracle: Oracle, question: Question) -> bool:
    return difference(question, ours(question), theirs(oracle, question)) == ""


def _without_integers(question: Question) -> Question:
    """The question with texts in the place of integers."""
    found: Question = {**question, "object": _texts(question["object"])}
    found["mutators"] = [_texts(one, at_spec=True) for one in question["mutators"]]
    return found


def _texts(value: Any, *, at_spec: bool = False) -> Any:
    if at_spec:
        return {**value, "spec": _texts(value["spec"])}
    if isinstance(value, dict):
        return {
            name: _INTEGER_KEY.sub(r":\1'#\2'\3]", item)
            if name in ("location", "subPath")
            else _texts(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return f"#{value}" if type(value) is int else value


def _without_null(question: Question) -> Question:
    return {**question, "object": _filled(question["object"])}


def _filled(value: Any) -> Any:
    """The value with objects where labels and annotations are null."""
    if isinstance(value, dict):
        return {
            name: {} if item is None and name in ("labels", "annotations") else _filled(item)
            for name, item in value.items()
        }
    return [_filled(item) for item in value] if isinstance(value, list) else value


def _without_shared(question: Question) -> Question:
    """The question with texts in the place of objects and lists that are assigned within lists."""
    return {**question, "mutators": [_plain(one) for one in question["mutators"]]}


def _plain(mutator: dict[str, Any]) -> dict[str, Any]:
    spec = mutator["spec"]
    assign = spec["parameters"].get("assign", {})
    if "[" not in spec["location"] or type(assign.get("value")) not in (dict, list):
        return mutator
    return {**mutator, "spec": {**spec, "parameters": {**spec["parameters"], "assign": _TEXT}}}


_TEXT = {"value": "text"}


def _loaded_anew(question: Question) -> Question:
    """The question with the mutators that are left alone, as after a restart."""
    left = {(one["kind"], one["metadata"]["name"]): one for one in question["mutators"]}
    gone = question.get("remove", ())
    return {
        **question,
        "mutators": [one for (_, name), one in left.items() if name not in gone],
        "remove": [],
    }


_CAUSES: tuple[tuple[str, Callable[[Question], Question]], ...] = (
    ("numbers of mutators are floats there", _without_integers),
    ("labels or annotations that are null", _without_null),
    ("items share what a glob assigned to them", _without_shared),
    ("conflicts that removals leave behind until a restart", _loaded_anew),
)
