"""Who writes what into a function: one builder, which the emitters of all parts share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.write.bodies import Bodies
from webhook.rego.write.calls import Calls
from webhook.rego.write.function import FunctionBuilder
from webhook.rego.write.references import References
from webhook.rego.write.terms import Terms
from webhook.rego.write.unification import Unification

if TYPE_CHECKING:
    from webhook.rego.write.unit import Unit
    from webhook.rego.write.uses import Uses


def new_function(unit: Unit, uses: Uses) -> FunctionBuilder:
    """A function to be written, with all that writes into it."""
    function = FunctionBuilder(unit, uses)
    function.terms = Terms(function)
    function.references = References(function)
    function.patterns = Unification(function)
    function.calls = Calls(function)
    function.nest = Bodies(function)
    return function
