"""The parser's list of built-ins is the registry's."""

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.syntax.builtin_names import BUILTIN_NAMES


def test_the_parser_knows_the_names_of_all_built_ins():
    """A constant rule may have none of them as its name."""
    assert set(BUILTINS) == BUILTIN_NAMES
