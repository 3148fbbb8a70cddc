"""A console over files, put together as the command does, in this process: each of its pages is asked."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_SECONDS
from tests.webhook.console.branches import MarkingEnvironment
from tests.webhook.console.client import Answered, ask
from webhook import log
from webhook.console.application import Console, ConsoleOptions
from webhook.console.drawing import Drawing
from webhook.console.files import FilesSource, Place
from webhook.console.picture import Picture, Shown
from webhook.console.playground import Playground
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.known import ADMISSION_ALONE, TARGETS

LOG = log.Log(lambda _: None).logger("test")
DRAWING = Drawing(MarkingEnvironment)
BELOW = Drawing(MarkingEnvironment, root="/clusters/a")
"""Of the pages of one of several clusters."""


def marks(drawing: Drawing = DRAWING) -> MarkingEnvironment:
    environment = drawing._environment
    assert isinstance(environment, MarkingEnvironment)
    return environment


WORLDS: "list[World]" = []
"""The worlds that were made; each may have a process."""


@dataclass
class World:
    """A console over files, and what else it is shown."""

    folder: Path
    options: ConsoleOptions = field(default_factory=ConsoleOptions)
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = PATIENCE_SECONDS
    """Of one evaluation in the playground."""

    def __post_init__(self) -> None:
        client = Client(
            targets=TARGETS, drivers=[RegoDriver(), CelDriver()], reviewed_targets=ADMISSION_ALONE
        )
        (self.folder / "policies").mkdir(exist_ok=True, parents=True)
        objects = self.folder / "objects.yaml"
        place = Place((self.folder / "policies",), (objects,) if objects.exists() else ())
        self.shown = Shown()
        self.source = FilesSource(place, client, self.shown, LOG)
        playground = Playground(self.seconds)
        self.console = Console(
            self.shown, self.source, self.options, LOG, DRAWING, playground=playground
        )

        WORLDS.append(self)

    def read(self) -> "World":
        """Show the files as they are now."""
        self.shown.swap(self.source.read())
        return self

    def show(self, picture: Picture) -> "World":
        """Show something else: a cluster."""
        self.shown.swap(picture)
        return self

    def go(self, path: str, form: Any = None, **query: str) -> Answered:
        """A page as HTML, and as JSON with the same status."""
        application = self.console.application()
        page = ask(application, path, query, form, **self.headers)
        assert page.status < 500 or page.status == 503, page.text[-2000:]
        answer = ask(application, path, {**query, "format": "json"}, form, **self.headers)
        assert answer.status == page.status
        return page
