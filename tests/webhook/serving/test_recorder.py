"""Recipients of a decision: listeners first, then the recorder, if there is one."""

import pytest

from tests.behaviour.serving import review
from webhook.api.admission import AdmissionResponse, read_review
from webhook.serving.recorder import ListenedRecorder, Reviewed

ALLOWED = AdmissionResponse("1", allowed=True)


class Recorded:
    """A recorder that marks answers."""

    def __init__(self):
        self.refused = []
        self.names = iter(("first", "second"))

    def answered(self, *arguments):
        *self.arguments, response = arguments
        return response._replace(message="recorded")

    def unanswered(self, reviewed, code, error):
        self.refused.append(code)


@pytest.fixture
def reviewed():
    return Reviewed(read_review(review()), None, None, (0.0, 0.0))


def test_listeners_hear_of_each_answer_before_it_is_recorded(reviewed):
    events, log = [], Recorded()
    recorder = ListenedRecorder([lambda *arguments: events.append(arguments)] * 2, log)
    request, responses, snapshot, (received, began) = reviewed
    answer = recorder.answered(request, responses, snapshot, received, began, ALLOWED)
    assert answer.message == "recorded"
    assert events == [(reviewed, ALLOWED)] * 2
    assert log.arguments == [request, responses, snapshot, received, began]
    assert next(recorder.names) == "first"


def test_listeners_do_not_hear_of_what_was_not_decided(reviewed):
    events, log = [], Recorded()
    recorder = ListenedRecorder([lambda *arguments: events.append(arguments)], log)
    recorder.unanswered(reviewed, 504, "late")
    assert events == []
    assert log.refused == [504]


def test_without_a_recorder_the_answer_is_left_as_it_is(reviewed):
    recorder = ListenedRecorder([lambda *_: None], None)
    assert recorder.answered(reviewed.request, None, None, 0.0, 0.0, ALLOWED) is ALLOWED
    assert next(recorder.names) == ""
    recorder.unanswered(reviewed, 504, "late")
