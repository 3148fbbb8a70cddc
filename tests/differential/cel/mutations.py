"""Mutated expressions with tokens left out, repeated or replaced: input for a parser."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TOKEN: Final = re.compile(
    r"\s+|[A-Za-z_]\w*|\d+\.\d+|\d+|'[^']*'|==|!=|<=|>=|&&|\|\||.", re.DOTALL
)
_OTHERS: Final = (
    "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "!", "-", "+", "1", "'a'", "x", "object", "in",
    "&&", "true", ".?", "[?", "{?", "==", "has", "1.5", "b'a'", "null", "?:", "1u", "r", "namespace",
)  # fmt: skip
_MOST: Final = 120
"""Characters of an expression that is changed."""


def written() -> list[str]:
    """Expressions of every form, right and wrong."""
    return Path(__file__).with_name("written.txt").read_text(encoding="utf-8").splitlines()


def mutations(chance: random.Random) -> Iterator[str]:
    """Expressions without end."""
    # Of what goes through a long range the oracle would never make an end.
    texts = [text for text in written() if len(text) <= _MOST and "lists.range" not in text]
    while True:
        tokens: list[str] = _TOKEN.findall(chance.choice(texts))
        for _ in range(chance.choice((1, 1, 1, 2))):
            at = chance.randrange(len(tokens) + 1)
            other = chance.choice((*_OTHERS, *tokens))
            tokens[at : at + chance.randrange(2)] = [other] if chance.random() < 0.7 else []
        yield "".join(tokens)
