"""`waddle` with a bug, planted by a test: `python -m tests.system.planted serve …`.

What denies with a certain word meets what nobody expects. The product itself has no switch for
this, so that none can be thrown by accident.
"""

from collections.abc import Callable

from webhook.api.admission import AdmissionResponse
from webhook.cli.main import main
from webhook.constraint.result import Responses
from webhook.server import verdict

WORD = "bug"

_judge = verdict.judge


def _judge_unless_planted(
    uid: str,
    responses: Responses,
    decision_id: str = "",
    rest: Callable[[float], None] | None = None,
) -> AdmissionResponse:
    if any(result.msg == f"denied by {WORD}" for result in responses.results):
        raise LookupError("a bug that a test has planted")
    return _judge(uid, responses, decision_id, rest)


if __name__ == "__main__":
    verdict.judge = _judge_unless_planted
    main()
