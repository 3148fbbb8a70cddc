"""Every built-in against the real OPA: values, undefined, and the text of errors."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.programs import Programs
from tests.webhook.rego.builtins.calling import Case, opa_answers, our_answer
from tests.webhook.rego.builtins.operands import CASES, mixed_cases

BY_NAME: defaultdict[str, list[Case]] = defaultdict(list)
for one in (*CASES, *mixed_cases()):
    BY_NAME[one[0]].append(one)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_builtin_answers_as_opa_does(name: str, program: Programs, tmp_path: Path) -> None:
    """Each case has OPA's value, or OPA's error word for word."""
    cases = BY_NAME[name]
    answers = opa_answers(str(program("opa")), cases, tmp_path)
    differing = [
        f"{case}\n  OPA:  {answer}\n  ours: {ours}"
        for case, answer in zip(cases, answers, strict=True)
        if (ours := our_answer(case)) != answer
    ]
    assert not differing, "\n".join(differing[:5])
