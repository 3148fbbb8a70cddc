"""A server that has evaluated a constraint often answers as before, from code for it alone."""

from pathlib import Path

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    await_true,
    constraint,
    pod,
    write_policies,
)

AFTER = 5


def messages(server: Server) -> list[str]:
    """The denials of three pods."""
    pods = (pod(), pod(owner="me"), pod(owner="me", team="x"))
    return [server.admit(one)["status"].get("message", "") for one in pods]


def test_the_answers_of_its_own_code_are_those_of_the_template_s(tmp_path: Path) -> None:
    policies = write_policies(
        tmp_path,
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        constraint("needs-team", "team"),
    )
    with Server(policies, f"--specialise-after={AFTER}") as server:
        server.ready()
        before = messages(server)
        assert before[2] == ""

        def evaluated() -> bool:
            assert messages(server) == before
            return server.metric("waddle_specialised_constraints") == 2

        await_true(evaluated)
        assert messages(server) == before
        assert (server.metric("waddle_specialised_bytes") or 0) > 1000
        assert server.metric("waddle_specialisations_refused") == 0


def test_zero_evaluations_switch_it_off(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies, "--specialise-after=0") as server:
        server.ready()
        before = messages(server)
        assert [messages(server) for _ in range(3)] == [before] * 3
        assert server.metric("waddle_specialised_constraints") is None
