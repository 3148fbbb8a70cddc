"""A load of real admissions, through the API server."""

import threading
from typing import Self

from tests.cluster import Api, ApiError
from tests.system.replicas import CONFIG_MAPS, config_map, until


class Load:
    """Admissions of ConfigMaps through the API server, by dry run, until stopped."""

    def __init__(self, api: Api, word: str, threads: int = 4) -> None:
        self.api = api
        self.word = word
        self.denied = 0
        self.wrong: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.ask()

    def ask(self) -> None:
        """One admission."""
        try:
            self.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map(self.word))
        except ApiError as error:
            if f"denied by {self.word}" in error.body:
                self.denied += 1
            else:
                self.wrong.append(str(error))
        else:
            self.wrong.append("admitted")

    @property
    def threads_count(self) -> int:
        """How many admissions are under way at once."""
        return len(self._threads)

    def wait_for(self, number: int) -> None:
        """Wait for so many more denials."""
        goal = self.denied + number
        until(lambda: self.denied >= goal, f"{number} denials more: {self.wrong[:3]}")
