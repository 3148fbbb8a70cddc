"""Compaction of etcd in the middle of a start's lists: the place in them is gone, no policy is."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS, until
from tests.system.bulk import create
from tests.system.conftest import ALL_OPERATIONS, StartReplica, control_plane
from tests.system.first_answers import FirstAnswers
from tests.system.gate import Gate
from tests.system.load import DRAINING, Load, is_denied
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONFIG_MAPS,
    WORKLOADS,
    Plane,
    config_map,
    constraint,
    template,
)
from tests.system.watched_lists import FEATURES
from webhook.cluster.reflector import Settings

PAGES = 2
OBJECTS = (PAGES - 1) * Settings().page_objects + 100
"""The marker, which is last by name, is on the second page."""

MARKER = "zz-marker"
SYNC_SET = "/apis/syncset.gatekeeper.sh/v1alpha1/syncsets/paged"


REFERENTIAL = f"""
package paged
violation[{{"msg": msg}}] {{
  marker := data.inventory.namespace["{WORKLOADS}"]["v1"]["ConfigMap"]["{MARKER}"]
  marker.data.word == input.review.object.data.deny
  msg := sprintf("denied by %v", [input.review.object.data.deny])
}}
"""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    """A control plane without streamed lists."""
    with control_plane(tmp_path, "-apiserver-args", FEATURES) as own:
        yield own
        own.cluster.kill()  # told to stop it would wait for watches


class Compaction:
    """Makes etcd forget every revision but the last, which is a new one."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._number = 0
        self._one_at_a_time = threading.Lock()

    def __call__(self) -> None:
        """Change an object of the first page, and compact: only a list can tell of the second."""
        with self._one_at_a_time:
            self._number += 1
            changed = config_map(f"changed {self._number}", "data-0000")
            self._plane.api.apply(f"{CONFIG_MAPS}/data-0000", changed)
            revision = self._ask("range", key="Zm9v")["header"]["revision"]
            self._ask("compaction", revision=revision, physical=True)

    def _ask(self, path: str, **body: Any) -> Any:
        url = f"{self._plane.cluster.etcd}/v3/kv/{path}"
        request = urllib.request.Request(url, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)


def put_marker(plane: Plane, word: str) -> None:
    """Change the last of the objects."""
    body = {**config_map("", MARKER), "data": {"word": word}}
    plane.api.apply(f"{CONFIG_MAPS}/{MARKER}", body)


def fill(plane: Plane) -> None:
    """A referential template, and objects to read on two pages."""
    objects = ((CONFIG_MAPS, config_map("", f"data-{number:04}")) for number in range(OBJECTS))
    create(plane.api, objects)
    put_marker(plane, "marked")
    sync_set = {
        "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
        "kind": "SyncSet",
        "metadata": {"name": "paged"},
        "spec": {"gvks": [{"group": "", "version": "v1", "kind": "ConfigMap"}]},
    }
    plane.api.apply(SYNC_SET, sync_set)
    plane.put_template(template("Paged", REFERENTIAL))


@pytest.mark.slow(30)
def test_replicas_whose_lists_are_cut_by_a_compaction_start_with_all_there_is(
    plane: Plane, gate: Gate, start: StartReplica, proxy: Proxy
) -> None:
    """Under load, three replicas replace one; each was between two pages when etcd forgot them."""
    fill(plane)
    first = start("waddle-first", *ALL_OPERATIONS, DRAINING).wait_ready()
    plane.put_constraint(constraint("words", "", "Paged"))
    until(lambda: first.denies("marked"), "the first enforces")
    proxy.replicas = [first]
    plane.register(proxy.port)
    until(lambda: is_denied(plane.api, "marked"), "the webhook is in place")

    gate.before(lambda path: "/configmaps?" in path and "continue=" in path, Compaction(plane))
    with Load(plane.api, "marked") as load:
        answers = FirstAnswers("marked")
        three = []
        through = f"--kubeconfig={gate.kubeconfig}"
        for number in range(3):
            three.append(start(f"waddle-{number}", *ALL_OPERATIONS, through))
            answers.of(three[-1])
        answers.join()
        assert answers.allowed == {replica.name: False for replica in three}
        cut = [status for path, status in gate.answers if "continue=" in path]
        assert set(cut) == {410}
        for replica in three:
            replica.wait_ready()
        until(lambda: all(replica.metric("waddle_watch_gone_total") for replica in three), "410s")

        proxy.replicas = three
        assert first.stop() == 0
        load.wait_for(50)
    assert load.wrong == []
    until(lambda: len({replica.digest for replica in three}) == 1, "the policies are one")
    until(lambda: len({replica.data_digest for replica in three}) == 1, "the data is one")
    put_marker(plane, "later")
    until(lambda: all(replica.denies("later") for replica in three), "each watches on")
    plane.unregister()
