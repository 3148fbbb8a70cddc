"""Garbage of compiling: there is none that only a collection would free."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver, modules_of
from webhook.constraint.targets.known import ADMISSION_ALONE, TARGETS
from webhook.policies.manifests import read_file
from webhook.rego.engine import specialise_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIBRARY = Path(__file__).parents[3] / "policies"
TEMPLATES = sorted(LIBRARY.glob("[gps]*/*/template.yaml"))
"""The templates for admission."""

DRIVER = RegoDriver()


@contextmanager
def saved_garbage() -> Iterator[Callable[[], list[str]]]:
    """A function that returns the types of the objects that a collection finds meanwhile."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)

    def types() -> list[str]:
        gc.collect()
        return sorted({f"{type(part).__module__}.{type(part).__qualname__}" for part in gc.garbage})

    try:
        yield types
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def compile_all(documents: list[dict[str, Any]]) -> Client:
    """Compile templates as a replica does, and each once more for a constraint."""
    client = Client(
        targets=TARGETS,
        drivers=[CelDriver(fails=False), DRIVER],
        reviewed_targets=ADMISSION_ALONE,
    )
    for document in documents:
        client.add_template(document)
        for code in document["spec"]["targets"][0]["code"]:
            if code["engine"] == "Rego":
                modules = modules_of(code["source"])
                specialise_modules(modules, {"labels": ["owner"]}, options=DRIVER.options)
    return client


def test_compiling_leaves_no_garbage() -> None:
    """It stayed with all rules until a full collection: 46 KiB with each template."""
    documents = [read_file(file)[0].document for file in TEMPLATES]
    compile_all(documents)  # fills the caches
    with saved_garbage() as types:
        client = compile_all(documents)
        assert types() == []
    assert client.usable_templates
