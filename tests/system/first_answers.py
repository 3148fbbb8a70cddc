"""First answers of replicas: a half-filled cache would admit what the last policy denies."""

import threading

from tests.system.replicas import Replica, config_map, review_of


class FirstAnswers:
    """Asks each replica from its start on, and keeps the first verdict that each gives."""

    def __init__(self, word: str) -> None:
        self.allowed: dict[str, bool] = {}
        self.refusals: dict[str, int] = {}
        """The numbers of answers "not ready" of each replica before."""
        self._word = word
        self._threads: list[threading.Thread] = []

    def of(self, replica: Replica) -> None:
        """Begin to ask a replica."""
        thread = threading.Thread(target=self._ask, args=(replica,))
        self._threads.append(thread)
        thread.start()

    def _ask(self, replica: Replica) -> None:
        body = review_of(config_map(self._word))
        while (answer := replica.post(body)).status == 503:
            self.refusals[replica.name] = self.refusals.get(replica.name, 0) + 1
        self.allowed[replica.name] = answer.verdict["allowed"]

    def join(self) -> None:
        """Wait for all of them."""
        for thread in self._threads:
            thread.join()
