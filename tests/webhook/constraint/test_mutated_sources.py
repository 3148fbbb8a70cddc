"""Real policies with parts taken out, doubled and put in: each is in force or refused, no more.

``WADDLE_MUTATIONS`` says how many are tried; ``make fuzz`` tries many.
"""

from __future__ import annotations

import os
import random
import re

import pytest
import yaml

from tests.policy_library import templates
from tests.webhook.constraint.policies import client, template
from webhook.constraint.errors import InvalidTemplate

MUTATIONS = int(os.environ.get("WADDLE_MUTATIONS", "60"))

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|\s+|.', re.DOTALL)

ODD = [
    *("1e99999999999", "0.1e1000000", "-0", "1e-30103", "00", ".5", "9" * 400, "1e", "0x1"),
    *("\U0001d4d0", "é", "\u2028", "\x00", "\ud800", "\ufeff", "\x7f", "\\", '"', "`", "$"),
    *("[" * 200, "{" * 200, "(" * 200, "not " * 200, "]" * 9, "}" * 9, "a." * 300, "[_]" * 120),
    *("with input as 1", "else = 1", "some x in y", "every x in y { true }", "{x | x := 1}"),
    *("import data.a", "package b", "default a = 1", "input", "data", "_", ":=", "=", "|", ";"),
]


def sources():
    """The Rego of this repository's templates, with their libraries."""
    found = []
    for file in templates():
        target = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]["targets"][0]
        found.append(target["code"][0]["source"])
    return found


def mutated(chance, text):
    """The text with up to four changes."""
    tokens = TOKEN.findall(text)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        at = chance.randrange(len(tokens))
        end = at + chance.randint(1, 6)
        match chance.randrange(5):
            case 0:
                del tokens[at:end]
            case 1:
                tokens[at:at] = tokens[at:end] * chance.choice([1, 2, 40])
            case 2:
                tokens[at] = chance.choice(ODD)
            case 3:
                tokens.insert(at, chance.choice(ODD))
            case _:
                tokens[at] = chance.choice(tokens)
        tokens = tokens or ["x"]
    return "".join(tokens)


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_policy_is_in_force_or_refused_and_shows_no_fault_of_ours(seed):
    """The framework's own messages say so."""
    chance = random.Random(seed)
    real = sources()
    subject = client()
    for _ in range(MUTATIONS // 4):
        source = chance.choice(real)
        rego = mutated(chance, source["rego"])
        code = [{"engine": "Rego", "source": {**source, "rego": rego}}]
        try:
            subject.add_template(template(rego="", target={"code": code}))
        except InvalidTemplate as error:
            assert error.bug is None, (rego, error.bug)  # noqa: PT017  # either may be
