"""Answers of our code and of Gatekeeper to a question, and their differences."""

import copy
import json
import re
from base64 import b64decode
from typing import Any

from tests.conformance.mutation import answers_of, nodes_of
from tests.differential.mutators.questions import Question
from tests.differential.oracle import Oracle
from tests.json_patch import apply_patch
from webhook.api.encoding import decode, is_same_json
from webhook.api.gvk import namespace_of
from webhook.constraint.expansion import ExpansionSet, InvalidExpansion, read_expansion_template
from webhook.mutation.annotations import annotated
from webhook.mutation.errors import InvalidMutator, MutationError
from webhook.mutation.expanding import expand
from webhook.mutation.external import settled, unanswered_keys
from webhook.mutation.location import canonical, parse
from webhook.mutation.mutator import MutatorId
from webhook.mutation.patch import make_patch
from webhook.mutation.registry import Mutators
from webhook.mutation.schema import message
from webhook.mutation.setting import Context

ZERO_ID = "00000000-0000-0000-0000-000000000000"
KINDS = ("Assign", "AssignImage", "AssignMetadata", "ModifySet")
CYCLE = "template forms expansion cycle"

Found = dict[str, Any]

_SPELLED = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"(conflicting path test conditions: path ).*( is marked MustExist but parent ).*( MustNotEx)",
        r"(invalid value: `).*()(`, only objects)",
        r"(expected value at AssignImage location to be a string, got ).*()()",
        r"(external data placeholder is not a string, got ).*()()",
        r"( failed for [^:]*: ).*()( is not a list of values)",
    )
)
"""Parts of messages that are spelled in Go's way, or wrongly."""


def theirs(oracle: Oracle, question: Question) -> Found:
    """Gatekeeper's answer."""
    found: Found = json.loads(oracle.line(question))
    assert not found["error"].startswith(("panic", "question", "object", "namespace")), found
    return found


def ours(question: Question) -> Found:
    """Our answer, in the same shape."""
    if "location" in question:
        return _location(question["location"])
    mutators = Mutators()
    found: Found = {"load": [], "conflicts": [], "error": "", "resultants": []}
    for document in question["mutators"]:
        _load(mutators, document, found)
    for name in question.get("remove", ()):
        for kind in KINDS:
            mutators.remove(MutatorId(kind, name))
    if question.get("expand"):
        _expand(question, mutators, found)
    else:
        _mutate(question, mutators, found)
    return found


def _location(text: str) -> Found:
    try:
        location = parse(text)
    except InvalidMutator as error:
        return {"error": str(error)}
    return {"error": "", "nodes": nodes_of(location), "canonical": canonical(location)}


def _load(mutators: Mutators, document: dict[str, Any], found: Found) -> None:
    try:
        mutator = mutators.add(document)
    except InvalidMutator as error:
        found["load"].append(str(error))
        found["conflicts"].append(None)
        return
    conflicts = mutators.conflicts_of(mutator.id)
    found["load"].append(message(conflicts) if conflicts else "")
    names = sorted(f"{item.kind}/{item.name}" for item in conflicts)
    found["conflicts"].append(names or None)


def _context(question: Question) -> Context:
    obj, namespace = question["object"], question["namespace"]
    own = namespace_of(obj)
    lent = namespace["metadata"]["name"] if namespace and obj["kind"] != "Namespace" else own
    return Context(question["operation"], namespace, lent, question["username"], question["source"])


def _mutate(question: Question, mutators: Mutators, found: Found) -> None:
    obj = question["object"]
    before = copy.deepcopy(obj)
    found["asked"] = {}
    try:
        mutated = mutators.snapshot.mutate(obj, _context(question))
        found["iterations"] = mutated.iterations
        found["asked"] = {
            name: sorted(keys)
            for name, keys in unanswered_keys(mutated).items()
            if name in question["providers"]
        }
        after = settled(mutated, answers_of(question["providers"]))
        if question["annotations"] and mutated.iterations:
            after = annotated(after, mutated.passes, ZERO_ID)
    except MutationError as error:
        found |= {"error": str(error), "iterations": error.iterations}
    else:
        found["after"] = after
        patch = make_patch(obj, after)
        assert is_same_json(apply_patch(obj, patch), after), (patch, obj, after)
        assert bool(patch) is not is_same_json(obj, after)
        if mutated.patch:  # Written on the way, as it is answered.
            assert is_same_json(
                apply_patch(obj, decode(b64decode(mutated.patch.base64))), mutated.object
            )
    assert is_same_json(before, obj), "what went in was changed"


def _expand(question: Question, mutators: Mutators, found: Found) -> None:
    templates = ExpansionSet()
    for document in question["templates"]:
        try:
            template = read_expansion_template(document)
        except InvalidExpansion as error:
            found["load"].append(str(error))
            continue
        templates.add(template)
        found["load"].append(CYCLE if template.name in templates.cyclic else "")
    for name in question.get("removeTemplates", ()):
        templates.remove(name)
    found["cyclic"] = sorted(templates.cyclic)
    try:
        made = expand(
            templates.expansion,
            mutators.snapshot,
            question["object"],
            question["namespace"],
            username=question["username"],
            on_error="reject",
            known=answers_of(question["providers"]),
        )
    except InvalidExpansion as error:
        found["error"] = str(error)
        return
    found["resultants"] = [
        {
            "template": one.template.name,
            "action": one.template.enforcement_action,
            "object": one.object,
        }
        for one in made
    ]


def difference(question: Question, mine: Found, real: Found) -> str:
    """Returns a description of the difference; empty if the answers agree."""
    if "location" in question:
        return _differs(mine, real, ("nodes", "canonical"))
    if text := _loaded(mine, real):
        return text
    if question.get("expand"):
        return _expanded(mine, real)
    if text := _differs(mine, real, ("after", "asked")):
        return text
    if mine["iterations"] != real["iterations"]:
        return f"iterations: ours {mine['iterations']}, theirs {real['iterations']}"
    return ""


def _differs(mine: Found, real: Found, parts: tuple[str, ...]) -> str:
    if bool(mine["error"]) != bool(real["error"]):
        return f"error: ours {mine['error']!r}, theirs {real['error']!r}"
    if mine["error"]:
        ours, theirs = _sentence(mine["error"]), _sentence(real["error"])
        return "" if ours == theirs else f"message: ours {ours!r}, theirs {theirs!r}"
    for part in parts:
        one, other = mine[part] or None, real[part] or None
        if not is_same_json(one, other):
            return f"{part}: ours {json.dumps(one)}, theirs {json.dumps(other)}"
    return ""


def _sentence(text: str) -> str:
    """A message without the id, which ours does not have, and without values.

    Gatekeeper looks the paths of path tests up by their places in the list, where it keeps them by
    their depth, and may name another one, or ``<nil>``. Other values it shows as Go does, or not.
    """
    text = text.replace(f"mutation {ZERO_ID} ", "mutation ")
    for pattern in _SPELLED:
        text = pattern.sub(r"\1…\2…\3", text)
    begins, found, listed = text.partition("external data placeholders: [")
    return begins + found + ", ".join(sorted(listed.removesuffix("]").split(", ")))


def _loaded(mine: Found, real: Found) -> str:
    for place, (one, other) in enumerate(zip(mine["load"], real["load"], strict=True)):
        if CYCLE in (one, other):
            continue  # Gatekeeper tells the template that closed the circle: `cyclic` has them all.
        if bool(one) != bool(other):
            return f"loading {place}: ours {one!r}, theirs {other!r}"
        if _sentence(one) != _sentence(other):
            return f"message of loading {place}: ours {one!r}, theirs {other!r}"
    if mine["conflicts"] != (real["conflicts"] or []):
        return f"conflicts: ours {mine['conflicts']}, theirs {real['conflicts']}"
    return ""


def _expanded(mine: Found, real: Found) -> str:
    if mine["cyclic"] != (real["cyclic"] or []):
        return f"circles: ours {mine['cyclic']}, theirs {real['cyclic']}"
    if bool(mine["error"]) != bool(real["error"]):
        return f"error: ours {mine['error']!r}, theirs {real['error']!r}"
    # The templates of one kind come in a random order there.
    one, other = (
        sorted(found["resultants"] or (), key=lambda item: json.dumps(item, sort_keys=True))
        for found in (mine, real)
    )
    if not is_same_json(one, other):
        return f"resultants: ours {json.dumps(one)}, theirs {json.dumps(other)}"
    return ""
