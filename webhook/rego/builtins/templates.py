"""``strings.render_template``: text with Go's template actions.

Documented in OPA's reference under "Strings"; behaviour from v1/topdown/template.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webhook.golang.format import TooLong
from webhook.golang.templates.execution import render
from webhook.golang.templates.functions import JsonNumber
from webhook.golang.templates.syntax import Nodes, parse
from webhook.golang.templates.tokens import TemplateError
from webhook.rego.builtins import go_json
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import number_text
from webhook.rego.run.text import MAX_CHARACTERS, display, text_too_large
from webhook.rego.types import ANY, STRING, object_of

if TYPE_CHECKING:
    from webhook.rego.run.values import Value


@lru_cache(maxsize=64)
def _parsed(source: str) -> dict[str, Nodes]:
    return parse(source)


@builtin("strings.render_template", STRING, object_of(STRING, ANY), result=STRING, context=True)
def render_template(context: Context, value: str, variables: Value) -> str:
    """Returns the text with its actions executed; missing values are ``<undefined>``."""
    shown = display(variables)
    context.charge(1 + (len(shown) + len(value)) // 4)
    # OPA reads the values from their text as JSON, so a set is a fault there.
    data = _data(go_json.decode(shown))
    try:
        text = render(context, _parsed(value), data, MAX_CHARACTERS)
    except TemplateError as error:
        raise BuiltinError(str(error)) from None
    except TooLong:
        raise text_too_large() from None
    return text.replace("<no value>", "<undefined>")


def _data(value: Value) -> Any:
    if type(value) is list:
        return [_data(item) for item in value]
    if type(value) is dict:
        return {name: _data(item) for name, item in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return JsonNumber(number_text(value))
    return value
