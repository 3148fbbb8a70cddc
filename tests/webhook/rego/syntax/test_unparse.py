"""Syntax trees back to source text."""

import pytest

from tests.conformance.gatekeeper import CONFORMANCE
from tests.conformance.opa_cases import load_cases
from tests.syntax_trees import canonical, unparse_module
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module, parse_query
from webhook.rego.syntax.unparse import unparse


@pytest.mark.slow
def test_every_module_of_opas_cases_survives_printing():
    """Parsed, printed and parsed again it is the same tree."""
    folder = CONFORMANCE / "opa"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set WADDLE_CONFORMANCE")
    modules = {(source, case.version) for case in load_cases([folder]) for source in case.modules}
    printed = 0
    for source, version in sorted(modules):
        try:
            module = parse_module(source, "", version)
        except RegoErrors:
            continue
        again = parse_module(unparse_module(module), "", module.version)
        assert canonical(again.rules) == canonical(module.rules)
        assert (again.package, again.imports) == (module.package, module.imports)
        printed += 1
    assert printed > 2000


def test_a_keyword_that_begins_a_literal_stays_in_front():
    """Anywhere else it would be a keyword."""
    module = parse_module("package a\np if { not.x == 1; with.y }")
    assert "{ not.x == 1; with.y }" in unparse_module(module)


def test_names_that_are_no_identifiers_are_quoted():
    """Keywords are quoted, too."""
    (literal,) = parse_query('x["a-b"]["if"].c[0]["é"]')
    assert unparse(literal.term) == 'x["a-b"]["if"].c[0]["é"]'
