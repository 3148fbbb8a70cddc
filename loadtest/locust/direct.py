"""AdmissionReviews straight to one or several replicas, over TLS with keep-alive.

`locust -f loadtest/locust/direct.py --headless --targets https://10.0.0.7:8443`, from the
repository's root.
"""

import uuid
from typing import Any, ClassVar

from loadtest.locust.answers import fault_of_review
from loadtest.locust.mix import Case
from loadtest.locust.session import ReviewUser, Shape

__all__ = ["Replica", "Shape"]

PATH = "/v1/admit?timeout=10s"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class Replica(ReviewUser):
    """An API server's connection to a replica."""

    _reviews: ClassVar[dict[str, tuple[bytes, bytes]]] = {}

    def ask(self, case: Case) -> tuple[Any, str | None]:
        """Send a review with a uid of its own."""
        if case.name not in self._reviews:
            self._reviews[case.name] = case.review(self.options.namespace)
        before, after = self._reviews[case.name]
        uid = str(uuid.uuid4())
        response = self.client.post(
            PATH,
            data=before + uid.encode() + after,
            headers=HEADERS,
            name=case.name,
            catch_response=True,
        )
        fault = fault_of_review(case.expected, uid, response.status_code, response.content)
        return response, fault
