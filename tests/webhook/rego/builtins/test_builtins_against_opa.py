"""Every built-in against the real OPA: values, undefined, and the text of errors."""

from collections import defaultdict

import pytest

from tests.programs import Programs
from tests.webhook.rego.builtins.calling import Answer, Case, opa_answers, our_answer
from tests.webhook.rego.builtins.operand_tables import CASES, mixed_cases

ALL = [*CASES, *mixed_cases()]


@pytest.fixture(scope="module")
def opas(
    program: Programs, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[tuple[Case, Answer]]]:
    """OPA's answers by built-in, all from one run."""
    answers = opa_answers(str(program("opa")), ALL, tmp_path_factory.mktemp("opa"))
    found = defaultdict(list)
    for case, answer in zip(ALL, answers, strict=True):
        found[case[0]].append((case, answer))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in ALL}))
def test_a_builtin_answers_as_opa_does(name, opas):
    """Each case has OPA's value, or OPA's error word for word."""
    differing = [
        f"{case}\n  OPA:  {answer}\n  ours: {ours}"
        for case, answer in opas[name]
        if (ours := our_answer(case)) != answer
    ]
    assert not differing, "\n".join(differing[:5])
