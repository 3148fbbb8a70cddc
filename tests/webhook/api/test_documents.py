"""YAML as Go's decoders read it; the expected values were printed by gator v3.23.1."""

from __future__ import annotations

import pytest

from webhook.api.documents import InvalidDocument, read_documents, read_json, read_objects

SCALARS = (
    "a: [1, 1.0, 1e3, 0x10, 0777, 1_000, +5, -3, .5, 1.5, 12:30, 0b11, -0x1f, 08, '0x10', 1e20]"
)


def values(text, dialect="kubernetes"):
    return [document.value for document in read_documents(text, dialect)]


def test_numbers_are_gos():
    expected = [1, 1, 1000, 16, 511, 1000, 5, -3, 0.5, 1.5, "12:30", 3, -31, 8, "0x10", 10**20]

    for dialect in ("kubernetes", "suite"):
        (found,) = values(SCALARS, dialect)
        assert expected == found["a"]
        assert [type(item) for item in expected] == [type(item) for item in found["a"]]


def test_yes_and_no_are_booleans_for_kubernetes_and_words_for_suites():
    text = "{a: yes, b: NO, c: on, d: True, e: 'yes', f: y}"

    assert values(text) == [{"a": True, "b": False, "c": True, "d": True, "e": "yes", "f": True}]
    assert values(text, "suite") == [
        {"a": "yes", "b": "NO", "c": "on", "d": True, "e": "yes", "f": "y"}
    ]


def test_moments_are_texts_for_kubernetes_and_rfc_3339_for_suites():
    text = "[2020-01-01, '2020-01-01', 2001-12-14t21:59:43.10Z, 2001-12-14 1:2:3, 2020-13-01]"

    assert values(text)[0] == [
        "2020-01-01",
        "2020-01-01",
        "2001-12-14t21:59:43.10Z",
        "2001-12-14 1:2:3",
        "2020-13-01",
    ]
    assert values(text, "suite")[0] == [
        "2020-01-01T00:00:00Z",
        "2020-01-01",
        "2001-12-14T21:59:43.1Z",
        "2001-12-14T01:02:03Z",
        "2020-13-01",
    ]


def test_keys_are_texts():
    assert values("{1: a, yes: b, 1.5: c}") == [{"1": "a", "true": "b", "1.5": "c"}]


def test_documents_know_their_line_and_empty_ones_are_left_out():
    found = read_documents("# only a comment\n---\n---\na: 1\n--- # next\nb: 2\n...\n")

    assert [(item.value, item.line) for item in found] == [({"a": 1}, 4), ({"b": 2}, 6)]


def test_anchors_and_merges_work():
    (found,) = values("a: &x {k: v}\nb: {<<: *x, l: w}\nc: *x")

    assert found == {"a": {"k": "v"}, "b": {"k": "v", "l": "w"}, "c": {"k": "v"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "line "),
        ("a: b\n---\nc: : d", "line 3: "),
        ("a: &a [*a]", "value contains itself"),
        ("{{a: b}: c}", "a key must be"),
        ("a: .nan", ".nan is not a number of JSON"),
        ("a: \x00", "."),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text, message):
    with pytest.raises(InvalidDocument, match=message):
        read_documents(text)


def test_aliases_that_write_out_to_billions_are_refused():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(InvalidDocument, match="excessive aliasing: more than"):
        read_documents("\n".join(lines))


def test_nesting_without_end_is_refused():
    with pytest.raises(InvalidDocument):
        read_documents("[" * 100_000)


def test_only_objects_may_be_asked_for():
    with pytest.raises(InvalidDocument, match="line 2: expected an object, got a list"):
        read_objects("---\n- 1")


def test_json_is_one_document_of_any_type():
    assert [document.value for document in read_json("[1, 2]")] == [[1, 2]]
    with pytest.raises(InvalidDocument):
        read_json("[1, 2")


def test_files_that_were_put_together_keep_their_marks_out_of_the_way():
    """A byte order mark shifts the first key of its document, unless it is left out."""
    for end in ("\n", "\r\n"):
        text = "\ufeffa: 1\nb: 2\n---\n\ufeffc: 3\nd: 4\n".replace("\n", end)
        assert [document.value for document in read_documents(text)] == [
            {"a": 1, "b": 2},
            {"c": 3, "d": 4},
        ]
    assert [(one.value, one.line) for one in read_json('{"a": 1}\n\ufeff{"b": 2}')] == [
        ({"a": 1}, 1),
        ({"b": 2}, 2),
    ]


def test_a_mark_within_a_text_stays():
    (document,) = read_documents('a: "\ufeff"\n---\n')
    assert document.value == {"a": "\ufeff"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "\\ud83d\\ude00"}', "\U0001f600"),
        ('\n {"a": "\\ud83d"}', "\ufffd"),
        ('{"a": "\\\\ud83d \\u00e9"}', "\\ud83d é"),
    ],
)
def test_a_text_in_braces_has_the_escapes_of_json(text, value):
    """kubectl, the API server and gator read it as JSON first."""
    (document,) = read_documents(text)
    assert document.value == {"a": value}
    with pytest.raises(InvalidDocument, match="invalid Unicode character"):
        read_documents('a: "\\ud83d"')


def test_texts_with_escaped_apostrophes_are_bounded():
    """Each of them that goes on on another line needs a parse: libyaml has no such escape."""
    many = "".join(f'- "it\\\'s\n  {n}"\n' for n in range(20_000))
    with pytest.raises(InvalidDocument, match="line 1: found unknown escape character"):
        read_documents(many)
    (document,) = read_documents(many[: many.index("100")] + '"')
    assert document.value[99] == "it's 99"
    (document,) = read_documents(many.replace("\n  ", " "))
    assert document.value[19_999] == "it's 19999"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('a: "x\\\'y" # "\nb: \'q\\\'\nc: "z\\\'"', {"a": "x'y", "b": "q\\", "c": "z'"}),
        ("a: \"\\'\"\nb: 'b\\'\nc: 'd\\'", {"a": "'", "b": "b\\", "c": "d\\"}),
        ('a: b" c\\\'d "e\nf: "g\\\'"', {"a": 'b" c\\\'d "e', "f": "g'"}),
        ('a: |\n "x\\\'y"\nb: "x\\\'y"', {"a": '"x\\\'y"\n', "b": "x'y"}),
        ("a: \"\\\\'y\\'\"", {"a": "\\'y'"}),
    ],
)
def test_only_texts_between_quotes_have_escapes(text, value):
    """A comment, a plain text and a block keep what looks like one."""
    (document,) = read_documents(text)
    assert document.value == value
