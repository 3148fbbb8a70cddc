"""Printed syntax trees parse back to the same tree, and no text crashes the parser."""

import string

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.rego_words import WORDS
from tests.syntax_trees import canonical, every_body, logical_body, modules, terms, unparse_module
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.ast import Expr
from webhook.rego.syntax.parser import parse_module, parse_query
from webhook.rego.syntax.unparse import unparse, unparse_body

slow_to_draw = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
    max_examples=60,
)


@slow_to_draw
@given(terms)
def test_a_printed_term_parses_to_itself(term):
    """Terms may have any parts."""
    (literal,) = parse_query(unparse(term))
    assert isinstance(literal, Expr)
    assert canonical(literal.term) == canonical(term)


@slow_to_draw
@given(every_body)
def test_a_printed_body_parses_to_itself(body):
    """Declarations, modifiers, iteration and negation."""
    assert canonical(parse_query(unparse_body(body))) == canonical(body)


@slow_to_draw
@given(logical_body)
def test_printed_logic_parses_to_itself(body):
    """Operands of and, or and not are bodies."""
    assert canonical(parse_query(unparse_body(body), imports=["and", "or", "not"])) == body


@slow_to_draw
@given(modules())
def test_a_printed_module_parses_to_itself(module):
    """Heads of every kind, else branches and imports."""
    assert canonical(parse_module(unparse_module(module))) == canonical(module)


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=60), st.sampled_from(["v0", "v1"]), st.booleans())
def test_a_jumble_of_words_is_read_or_refused(words, version, spaced):
    """With the language's own errors and no other."""
    source = "package a\n" + (" " if spaced else "").join(words)
    try:
        module = parse_module(source, "f.rego", version)
    except RegoErrors as errors:
        str(errors)
    else:
        printed = parse_module(unparse_module(module), "", module.version)
        assert canonical(printed.rules) == canonical(module.rules)


@settings(deadline=None)
@given(st.text(st.characters() | st.sampled_from(string.punctuation), max_size=80))
def test_any_text_is_read_or_refused(source):
    """The text is read as a module and as a query, in both versions."""
    for version in ("v0", "v1"):
        for read in (parse_module, parse_query):
            try:
                read(source, version=version)
            except RegoErrors as errors:
                str(errors)
