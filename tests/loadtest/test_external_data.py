"""The bench of external data: its provider, what a bare client waits for that, and its verdicts."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadtest import external_data, readme
from loadtest.bench.servers import Server
from loadtest.external_data import GOOD, HANGING, PROVIDER_MS, QUICK, Row, Run, Taken, Trips
from tests.programs import Programs
from webhook.external_data.client import ProviderClient
from webhook.external_data.provider import read_provider
from webhook.external_data.response import ProviderFault


class Pair:
    """The pair of a run, as a replica shows it."""

    version: object = 1

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lend(self, context: Any) -> None:
        """Show it."""
        context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")


def test_its_provider_answers_each_key_and_never_one_that_hangs(
    program: Programs, tmp_path: Path
) -> None:
    program("provider")
    run = Run(tmp_path, QUICK)
    with run.providers() as found:
        assert [one["metadata"]["name"] for one in found] == [GOOD, HANGING]
        assert run.trips.one >= PROVIDER_MS
        assert run.trips.together >= PROVIDER_MS

        async def values(document: dict[str, Any], seconds: int, *keys: str) -> dict[str, Any]:
            provider = {**document, "spec": {**document["spec"], "timeout": seconds}}
            client = ProviderClient(read_provider(provider), Pair(run.certificates))
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            client.ask(keys, lambda answer, status: future.set_result((answer, status)))
            try:
                answer, status = await future
            finally:
                client.retire()
            if isinstance(answer, Exception):
                raise answer
            assert status == 200
            return {item.key: item.value for item in answer.items}

        known = {"a": "a is known", "b": "b is known"}
        assert asyncio.run(values(found[0], 30, "a", "b")) == known
        with pytest.raises(ProviderFault, match="no answer within 1 s"):
            asyncio.run(values(found[1], 1, "hang/a"))


def run_of(tmp_path: Path, trips: Trips) -> Run:
    """A run whose provider was measured."""
    run = Run(tmp_path, QUICK)
    run.trips = trips
    return run


def test_both_round_trips_are_shown_and_the_goal_is_in_those_of_requests_at_once(
    tmp_path: Path,
) -> None:
    run = run_of(tmp_path, Trips(20.0, 22.0))
    still, asking = [Taken(0.1, 1.0), Taken(5.0, 5.0)], [Taken(1.0, 23.2), Taken(10.0, 95.0)]
    one, together, in_series, *_ = external_data.uncached(run, still, asking)
    assert (round(one.ratio, 2), one.goal, one.holds) == (1.11, None, True)
    assert (round(together.ratio, 3), together.goal, together.holds) == (1.009, 1.0, False)
    assert (round(in_series.ratio, 3), in_series.goal) == (0.987, None)
    shown = external_data.page([one, together])
    assert "round trips of one request, 20.0 ms | 22.2 ms | 90.0 ms | 1.110 | | |" in shown
    assert "of 4 at once, 22.0 ms | 22.2 ms | 90.0 ms | 1.009 | 1 | missed |" in shown


def test_the_page_of_figures_shows_the_rows_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Row("added", "1 ms", "2 ms", 0.5)._asdict()]
    (tmp_path / "external_data.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    assert "| added | 1 ms | 2 ms | 0.5 |" in readme.external_data()


def test_what_has_no_goal_is_never_missed() -> None:
    assert Row("what", "1", "2", 7.0).holds
    assert not Row("what", "1", "2", 7.0, 6.9).holds


def test_measuring_begins_once_both_allow_a_pod_that_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gatekeeper is ready before it knows its providers, and denies until then."""
    answers = {"waddle": [True, True], "gatekeeper": [False, False, True, True]}

    def ask(server: Server, _body: Path) -> dict[str, Any]:
        return {"uid": "1", "allowed": answers[server.name].pop(0)}

    monkeypatch.setattr(external_data, "ask", ask)
    monkeypatch.setattr("loadtest.bench.measurement.ask", ask)
    monkeypatch.setattr(external_data, "BEGUN_POLL_SECONDS", 0)
    servers = [cast("Server", SimpleNamespace(name=name)) for name in answers]
    Run(tmp_path, QUICK).begun(servers)
    assert answers == {"waddle": [], "gatekeeper": []}
