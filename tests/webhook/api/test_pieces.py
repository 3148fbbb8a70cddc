"""JSON put together by the piece is what the decoders make of the whole."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.behaviour.serving import review
from webhook.api import json_decoder as pieces
from webhook.api import long_texts
from webhook.api.admission import (
    MEMBERS_MAX,
    TEXT_CHARACTERS_MAX,
    UndecidableReview,
    decode_review,
)
from webhook.api.encoding import decode, encode
from webhook.api.json_decoder import BeyondBounds, DecodeError, decode_in_pieces, decode_piece

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

SCALARS = (1, None, True, 'x,"]{}\\', 1.5, 10**25, "é", -0.0, "", 10**19)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that every way of taking a document apart is gone."""
    monkeypatch.setattr(pieces, "PIECE_BYTES", 20)
    monkeypatch.setattr(pieces, "_DESCENT_BYTES", 10)
    monkeypatch.setattr(pieces, "_PIECE_DEPTH", 3)


def value(chance: random.Random, depth: int) -> Any:
    """A value that nests at random."""
    kind = chance.random()
    if depth > 6 or kind < 0.35:
        return chance.choice(SCALARS)
    if kind < 0.7:
        return [value(chance, depth + 1) for _ in range(chance.randrange(5))]
    return {
        chance.choice('abc,{"\\') * chance.randrange(4): value(chance, depth + 1)
        for _ in range(chance.randrange(5))
    }


def outcome(decoder: Any, raw: bytes) -> Any:
    """Returns a decoder's value of bytes; None if it refuses them."""
    try:
        return [decoder(raw)]
    except DecodeError:
        return None


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(20))
def test_what_is_decoded_by_the_piece_is_the_whole(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        made = value(chance, 0)
        raw = json.dumps(made, indent=chance.choice([None, 1])).encode()
        assert decode_in_pieces(raw) == made
        broken = bytearray(raw)
        for _ in range(chance.randrange(1, 3)):
            at = chance.randrange(len(broken) + 1)
            broken[at : at + chance.randrange(2)] = chance.choice(
                [b",", b"[", b"]", b"{", b"}", b'"', b":", b"1", b"", b" "]
            )
        changed = bytes(broken)
        assert outcome(decode_in_pieces, changed) == outcome(decode_piece, changed), changed


MEMBERS = (1, True, '"},', '"],{', '","', "a", {"a": 1}, {"a": "},"}, ["],"], [], {}, [[1], "b"])


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_guess_where_a_member_ends_changes_nothing(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        members = chance.choices(MEMBERS, k=chance.randrange(1, 4))
        named = {f"k{n},": member for n, member in enumerate(chance.choices(members, k=30))}
        spec = {"items": chance.choices(members, k=30), "after": members, "named": named}
        made = {"spec": spec, "b": members}
        separators = chance.choice([(",", ":"), (", ", ": ")])
        raw = json.dumps(made, indent=chance.choice([None, 1]), separators=separators).encode()
        assert decode_in_pieces(raw) == made
        at = chance.randrange(len(raw))
        broken = raw[:at] + chance.choice([b'"', b"]", b"}", b",", b""]) + raw[at + 1 :]
        assert outcome(decode_in_pieces, broken) == outcome(decode_piece, broken), broken


def test_a_long_list_is_decoded_without_looking_at_each_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each costs ten times what it takes to decode it, while other threads ask for the interpreter."""
    taken: list[int] = []

    def noted(raw: bytes) -> Any:
        taken.append(len(raw))
        return decode_piece(raw)

    monkeypatch.setattr(pieces, "decode_piece", noted)
    containers = [{"name": f"c{n}", "image": f"registry/image-{n}"} for n in range(20_000)]
    raw = json.dumps({"spec": {"containers": containers}}).encode()
    assert decode_in_pieces(raw) == {"spec": {"containers": containers}}
    assert len(taken) < 2 * len(raw) / pieces.PIECE_BYTES
    assert max(taken) < 2 * pieces.PIECE_BYTES


def test_a_long_object_is_decoded_without_looking_at_each_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marks = Counter[str]()
    marking = pieces._MARK

    class Marking:
        def finditer(self, *arguments: Any) -> Iterator[re.Match[bytes]]:
            for mark in marking.finditer(*arguments):
                marks["looked at"] += 1
                yield mark

    monkeypatch.setattr(pieces, "_MARK", Marking())
    rests: list[None] = []
    data = {f"k{n:06}": f"v{n}" for n in range(20_000)}
    raw = json.dumps({"data": data}, separators=(",", ":")).encode()
    assert decode_in_pieces(raw, rest=lambda: rests.append(None)) == {"data": data}
    assert marks["looked at"] < 20_000
    assert len(rests) >= len(raw) // pieces.PIECE_BYTES - 2


@pytest.mark.parametrize("depth", [1_000, 1_025, 3_000, 10_000])
@pytest.mark.parametrize(("opening", "closing"), [(b'{"a":', b"}"), (b"[", b"]")])
def test_a_document_as_deep_as_gos_decoder_goes_is_decoded_and_encoded(
    depth: int, opening: bytes, closing: bytes
) -> None:
    raw = opening * depth + b"123456789012345678901" + closing * depth
    assert encode(decode(raw)) == raw


@pytest.mark.parametrize("opening", [b'{"a":', b"["])
def test_a_document_deeper_than_gos_decoder_goes_is_beyond_bounds(opening: bytes) -> None:
    closing = b"}" if opening != b"[" else b"]"
    with pytest.raises(BeyondBounds, match="nested deeper than 10016 levels"):
        decode(opening * 10_017 + b"1" + closing * 10_017)


def test_what_is_deep_is_encoded_with_its_names_in_order() -> None:
    deep: Any = {"b": "<\ud800>", "a": (10**30, None)}
    for _ in range(2_000):
        deep = [deep]
    expected = b'[{"a":[1000000000000000000000000000000,null],"b":"<?>"}]'
    assert encode(deep, sort_keys=True) == b"[" * 1_999 + expected + b"]" * 1_999


TEXT_PARTS = ("a", "é", "😀", '"', "\\", "\n", "<", "x" * 700, "\\" * 70, '"' * 70, "中" * 300)


@pytest.mark.parametrize("seed", range(20))
def test_texts_longer_than_a_piece_are_decoded_as_the_whole_is(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every place of a document, escaped in every way, cut everywhere."""
    monkeypatch.setattr(pieces, "PIECE_BYTES", 20)
    monkeypatch.setattr(pieces, "_DESCENT_BYTES", 10)
    monkeypatch.setattr(long_texts, "LOOK_BYTES", 12 + seed)
    chance = random.Random(seed)
    for _ in range(100):
        texts = ["".join(chance.choices(TEXT_PARTS, k=chance.randrange(12))) for _ in range(4)]
        made = [
            {"a": texts[0], texts[1]: [texts[2], {"b": 1}, texts[3]], "c": None},
            texts[0],
            [[texts[1]], 2],
            {texts[2]: {texts[3]: texts[0], texts[1]: 1, "d": {texts[0]: {}}}, texts[0]: texts[1]},
        ]
        raw = json.dumps(made, ensure_ascii=chance.random() < 0.5).encode()
        raw = raw.replace(b"<", b"\\u003c")
        assert decode_in_pieces(raw) == made
        at = chance.randrange(len(raw))
        broken = raw[:at] + chance.choice([b'"', b"\\", b"]", b":", b",", b""]) + raw[at + 1 :]
        assert outcome(decode_in_pieces, broken) == outcome(decode_piece, broken), broken


def test_a_name_of_megabytes_is_decoded() -> None:
    """The history of an object's fields has names as long as the object's."""
    name = "<" * 1024 * 1024
    raw = json.dumps({"f:data": {f"f:{name}": {}, "after": [name]}}).replace("<", "\\u003c")
    assert decode_in_pieces(raw.encode()) == {"f:data": {f"f:{name}": {}, "after": [name]}}


def test_a_text_longer_than_an_api_server_takes_is_not_put_together() -> None:
    """38 MiB of one text were put together in one call, for 40 ms of everybody."""
    longest = "x" * TEXT_CHARACTERS_MAX
    for text, is_decided in ((longest, True), (longest + "x", False)):
        body = json.dumps({**review(), "request": {"object": {"a": [text]}}}).encode()
        if is_decided:
            request = decode_review(body, large=[])
            assert request.object == {"a": [text]}
        else:
            with pytest.raises(UndecidableReview, match="longer than any that an API server takes"):
                decode_review(body, large=[])


def test_no_single_call_decodes_a_name_or_text_of_megabytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other threads wait for each."""
    sizes: list[int] = []
    loads = orjson.loads

    def noted(raw: bytes) -> Any:
        sizes.append(len(raw))
        return loads(raw)

    monkeypatch.setattr(orjson, "loads", noted)
    name = "é\n" * 128 * 1024
    made = {
        "a": {name: {name: [name]}},
        name: 1,
        "b": [{name: name}, {name: {}}, {name: [1, {"c": {}}], "d": 2}],
    }
    for ascii_only in (True, False):
        raw = json.dumps(made, ensure_ascii=ascii_only, indent=1).encode()
        assert decode_in_pieces(raw) == made
    assert max(sizes) < 2 * pieces.PIECE_BYTES


@pytest.mark.usefixtures("small_pieces")
def test_an_object_of_too_many_members_is_refused_before_they_are_added() -> None:
    """Python made room for half a million in one call, while all other threads waited."""
    data = {f"k{number:03}": number for number in range(100)}
    raw = json.dumps({"data": data}, separators=(",", ":")).encode()
    assert decode_in_pieces(raw, members_max=100) == {"data": data}
    large: list[Any] = []
    with pytest.raises(BeyondBounds, match="an object has more than 99 members"):
        decode_in_pieces(raw, members_max=99, large=large)
    assert len(large[-1]) <= 99


def test_a_review_with_an_object_of_too_many_members_cannot_be_decided() -> None:
    members = b",".join(b'"%x":1' % number for number in range(MEMBERS_MAX + 1))
    body = b'{"request":{"object":{"data":{' + members + b"}}}}"
    with pytest.raises(UndecidableReview, match="an object has more than"):
        decode_review(body, large=[])
