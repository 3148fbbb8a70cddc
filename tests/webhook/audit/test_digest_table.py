"""The table of digests is a dict that forgets what a complete round did not see, in less memory."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest

from webhook.audit.digest_table import ENTRY_BYTES, OBJECT_DIGEST_BYTES, VALUE_BYTES, DigestTable


@pytest.mark.parametrize("seed", range(10))
def test_it_is_a_dict_of_what_complete_rounds_saw(seed: int) -> None:
    random = Random(seed)
    digests = [random.randbytes(OBJECT_DIGEST_BYTES) for _ in range(random.choice([5, 400]))]
    table, model = DigestTable(), dict[bytes, bytes]()
    for _ in range(30):
        table.begin()
        seen = set()
        for digest in random.sample(digests, random.randrange(len(digests))):
            assert (digest in table) == (digest in model)
            if random.random() < 0.5:
                assert table.see(digest) == model.get(digest)
            else:
                value = b"value" * random.randrange(9)
                table.put(digest, value)
                model.setdefault(digest, value)
            seen.add(digest)
        if random.random() < 0.7:
            table.end()
            model = {digest: value for digest, value in model.items() if digest in seen}
        assert len(table) == len(model)
        values = set(model.values())
        assert table.memory == len(model) * ENTRY_BYTES + sum(
            VALUE_BYTES + len(value) for value in values
        )


def test_a_digest_is_not_found_across_two_records() -> None:
    table = DigestTable()
    one, other = bytes(16), bytes(15) + b"\1"
    table.put(one, b"")
    table.put(other, b"")
    across = bytes(8) + b"\1" + bytes(7)
    assert one in table
    assert other in table
    assert across not in table


@pytest.mark.parametrize("number", [1_000, 12_500, 24_000])
def test_its_memory_is_what_it_says(number: int) -> None:
    random = Random(number)
    digests = [random.randbytes(OBJECT_DIGEST_BYTES) for _ in range(number)]
    for length in (0, 100):
        table = DigestTable()
        tracemalloc.start()
        for place, digest in enumerate(digests):
            table.put(digest, str(place if length else 0).encode().ljust(length, b"."))
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 0.7 * table.memory < held <= table.memory
        assert peak < 1.5 * table.memory
