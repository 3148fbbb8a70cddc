"""Pages are plain English, by rules that find what is not."""

import pytest

from tests.programs import ROOT
from tests.prose import (
    DECISION_WORDS_MAX,
    WORDS_MAX,
    docstring_faults,
    faults,
    faults_of,
    faults_of_module,
    length_faults,
    message_faults,
    modules,
    modules_of_tests,
    pages,
    plural_faults,
    sentences,
)

pytestmark = pytest.mark.usefixtures("without_garbage_collection")

BAD = [
    "No constraint in nothing is ever met.",
    "What is left out is told by the log.",
    "It warns of kinds that there are not.",
    "A constraint of whose kinds none is synced has no total.",
    "It stands there all the same.",
    "The replica is, as it were, asleep.",
    "Operators utilize the flag.",
    "Restart the Pod in order to read the file again.",
    "You can easily remove it.",
    "The fault is told in the status.",
    "Set it where a line for each is wanted.",
    "A constraint may name a kind that there is not.",
    "A message that is none ends the call.",
    "The request is reviewed as ever.",
    "Who may read the Secret can sign.",
    "Whoever adds to it measures it.",
    "The difference is shown to who may list Namespaces.",
    " ".join(["word"] * (WORDS_MAX + 1)) + ".",
]


@pytest.mark.parametrize("sentence", BAD)
def test_a_bad_sentence_is_named(sentence):
    assert [fault.line for fault in faults(f"# Title\n\n{sentence}\n") if fault.line == 3]


def test_a_page_of_long_sentences_is_named():
    page = "\n\n".join([" ".join(["word"] * 15) + "."] * 3)
    assert ["half of the sentences" in fault.text for fault in faults(page)] == [True]


def test_a_decision_record_of_more_than_a_page_is_named():
    short = "It is so. " * (DECISION_WORDS_MAX // 3)
    assert list(length_faults(short + "\n\n| " + "a word | " * 300)) == []
    assert [fault.line for fault in length_faults(short + "And this is too much.")] == [1]


def test_code_links_and_tables_are_no_long_sentences():
    page = (
        "```console\n$ " + "word " * 50 + "\n```\n\n"
        "See [the page](https://example.com/all/the/same). It says why.\n\n"
        "| one | " + "two | " * 50 + "\n"
    )
    assert list(faults(page)) == []
    assert [line for line, _ in sentences(page)][:2] == [5, 5]


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_plain(path):
    assert list(faults_of(path)) == []


@pytest.mark.parametrize(
    "line",
    [
        'log.warning("object not written", name=name)',
        'self._log.error("byPod not written")',
        'self.logger.info(f"{name} not taken, was told so")',
        f'log.info("{"word " * 26}")',
        'raise ValueError("the fault is told in the status")',
        'complain(f"no constraint in nothing: {name}")',
    ],
)
def test_a_bad_text_of_the_program_is_named(line):
    assert list(message_faults(line))


def test_a_good_text_of_the_program_is_not():
    good = """
def f(log):
    \"\"\"What is told here is a docstring.\"\"\"
    log.warning("an object was not written; trying again", told=1)
    registry.count("told")
"""
    assert list(message_faults(good)) == []


def test_a_number_before_a_plural_is_named():
    assert list(plural_faults('f"{count} objects"'))
    assert list(plural_faults('f"{len(found)} recorded decisions of {all}"'))
    assert not list(plural_faults('f"at most {LINES_MAX} lines, {quantity(n, what)} left"'))


def test_the_texts_of_the_program_are_plain():
    named = [
        f"{path.relative_to(ROOT)}:{fault.line}: {fault.text}"
        for path in modules()
        for fault in faults_of_module(path)
    ]
    assert named == []


@pytest.mark.parametrize(
    "source",
    [
        '"""What a module holds."""',
        'class A:\n    """Who asks."""',
        'def f():\n    """Those of a module."""',
        'async def f():\n    """\n    What is left."""',
        'SECONDS = 1\n"""Whose time it is."""',
        '"""What is printed as help."""\nprint(__doc__)\ndef f():\n    """What it is."""',
    ],
)
def test_a_docstring_without_a_subject_is_named(source):
    last = source.count("\n", 0, source.rindex('"""', 0, -3)) + 1
    assert [fault.line for fault in docstring_faults(source)] == [last]


@pytest.mark.parametrize(
    "source",
    [
        '"""The contents of a module."""\ntext = "What is no docstring"',
        'def f():\n    """Whatever: only whole words count."""\n    # What a comment says',
        '"""What is printed as help."""\nprint(__doc__)',
    ],
)
def test_a_docstring_with_a_subject_is_not_named(source):
    assert list(docstring_faults(source)) == []


def test_docstrings_of_tests_name_their_subjects():
    named = [
        f"{path.relative_to(ROOT)}:{fault.line}: {fault.text}"
        for path in modules_of_tests()
        for fault in docstring_faults(path.read_text("utf-8"))
    ]
    assert named == []
