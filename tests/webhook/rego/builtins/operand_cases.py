"""Cases of built-ins, made of tables: all combinations of their operands.

Where there are more than asked for, some are drawn, always the same ones.
"""

import itertools
import json
import random
from dataclasses import dataclass
from typing import Any

from tests.webhook.rego.builtins.calling import Case

RANDOM = random.Random(7)

CASES: list[Case] = []


@dataclass(frozen=True)
class Raw:
    """An operand whose JSON must stay as written."""

    text: str


def _text(operand: Any) -> str:
    if isinstance(operand, Raw):
        return operand.text
    if isinstance(operand, list):
        return f"[{', '.join(map(_text, operand))}]"
    return json.dumps(operand, ensure_ascii=False)


def table(name: str, *pools: Any, most: int = 150) -> None:
    """Cases of one built-in: combinations of the operands in the pools."""
    combinations = list(itertools.product(*pools))
    if len(combinations) > most:
        combinations = RANDOM.sample(combinations, most)
    CASES.extend((name, tuple(map(_text, chosen))) for chosen in combinations)


def raw(name: str, *operands: str) -> None:
    """Adds a case, its operands given as JSON."""
    CASES.append((name, operands))
