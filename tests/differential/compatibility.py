"""Questions about compatibility with older versions of Rego."""

from tests.differential.agreement import Question
from tests.differential.opa_versions import Difference
from webhook.rego.builtins.registry import LATEST


def question(line: Difference, level: str = LATEST) -> Question:
    """Returns the question of a line."""
    modules = (line.module,)
    return Question(modules, "x = data.a.p", line.version, strict=line.strict, level=level)
