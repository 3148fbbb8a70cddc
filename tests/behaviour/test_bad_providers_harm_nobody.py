"""Providers that do what they should not: each has its error, its count and a verdict, and no more.

The provider and the server are processes of their own; the policies are files.
"""

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import policies
from tests.behaviour.serving import Server, thing
from tests.patience import until
from tests.ports import free_port
from tests.provider_process import LARGE_BYTES, ProviderProcess, make_authority
from webhook.certificates.pairs import self_signed

ASKS = policies.template(
    "Asks",
    """
    package asks
    violation[{"msg": msg}] {
      response := external_data({"provider": input.review.object.provider, "keys": input.review.object.keys})
      shown := object.union(response, {
        "responses": first(response.responses), "errors": first(response.errors),
        "count": count([pair | pair := response.responses[_]]),
      })
      msg := json.marshal(shown)
    }
    first(pairs) = array.slice(pairs, 0, 5)
    first(null) = null
    """,
)
"""Denies everything, with what the provider said: messages have an end."""

CHAIN_DEPTH = 8
CHAINS = policies.template(
    "Chains",
    """
    package chains
    next(key) = value {
      response := external_data({"provider": "good", "keys": [key]})
      response.system_error == ""
      value := response.responses[0][1]
    } else = value {
      response := external_data({"provider": "good", "keys": [key]})
      value := sprintf("fails: %v", [response.system_error])
    }
    violation[{"msg": last}] {
      STEPS
      last := KEY
    }
    """.replace(
        "STEPS",
        "\n".join(
            f"key{n + 1} := next({f'key{n}' if n else 'input.review.object.chain'})"
            for n in range(CHAIN_DEPTH)
        ),
    ).replace("KEY", f"key{CHAIN_DEPTH}"),
)
"""Each answer is the next key."""

CAREFUL = policies.template(
    "Careful",
    """
    package careful
    violation[{"msg": "nobody vouches for it"}] {
      image := input.review.object.image
      response := external_data({"provider": "good", "keys": [image]})
      not vouched(response, image)
    }
    vouched(response, image) { response.responses[_] == [image, sprintf("%v is known", [image])] }
    """,
)
"""A careful policy: it denies images that the provider does not confirm."""


BY_CHANCE = policies.template(
    "ByChance",
    """
    package bychance
    violation[{"msg": msg}] {
      key := sprintf("%v %v %v", [time.now_ns(), rand.intn("x", 1000000), uuid.rfc4122("y")])
      response := external_data({"provider": "good", "keys": [key]})
      msg := sprintf("heard of %v, %v", [count(response.responses), response.system_error])
    }
    """,
)
"""A key that is another at each evaluation."""


def serving(folder: Path, stack: ExitStack, documents: list[dict[str, Any]], *flags: str) -> Server:
    """A server with these policies and Providers."""
    files = folder / "policies"
    files.mkdir()
    (files / "all.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
    return stack.enter_context(Server(files, f"--cert-dir={folder / 'pair'}", *flags)).ready()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the server's pair, which providers know."""
    import datetime as dt

    directory = tmp_path_factory.mktemp("bad-providers")
    pair = self_signed(["localhost", "127.0.0.1"], dt.datetime.now(tz=dt.UTC))
    (directory / "pair").mkdir()
    (directory / "pair" / "tls.crt").write_bytes(pair.certificate)
    (directory / "pair" / "tls.key").write_bytes(pair.key)
    return directory


@pytest.fixture(scope="module")
def good(folder: Path) -> Iterator[ProviderProcess]:
    """A provider that asks who calls."""
    with ProviderProcess(
        folder / "good", authority=make_authority(), client_authority=folder / "pair" / "tls.crt"
    ) as process:
        yield process


@pytest.fixture(scope="module")
def server(folder: Path, good: ProviderProcess) -> Iterator[Server]:
    """A server with every bad provider."""
    with ExitStack() as stack:

        def start(name: str, **options: Any) -> ProviderProcess:
            return stack.enter_context(ProviderProcess(folder / name, **options))

        authority = make_authority()
        expired = start("expired", authority=make_authority(days=-1))
        elsewhere = start("elsewhere", authority=make_authority(["provider.example"]))
        plain = start("plain", authority=None)
        stranger = start("stranger", authority=make_authority())
        strict_file = folder / "others.pem"
        strict_file.write_bytes(authority.certificate)
        strict = start("strict", authority=authority, client_authority=strict_file)
        providers = [
            good.manifest("good", timeout=30),
            good.manifest("large", timeout=30),
            good.manifest("tardy", timeout=5),
            good.manifest("hasty", timeout=1),
            good.manifest("silent", timeout=10),
            good.manifest("timeless", timeout=0),
            good.manifest("shared", timeout=1),
            expired.manifest("expired"),
            elsewhere.manifest("elsewhere"),
            good.manifest("plain", url=f"https://127.0.0.1:{plain.port}/"),
            stranger.manifest("stranger", caBundle=good.ca_bundle),
            strict.manifest("strict"),
            good.manifest("closed", url=f"https://127.0.0.1:{free_port()}/"),
            good.manifest("lost", url="https://nowhere.invalid/"),
            good.manifest("unencrypted", url=f"http://127.0.0.1:{plain.port}/"),
        ]
        constraints = [
            policies.constraint("Asks", "asks", kinds=["ConfigMap"]),
            policies.constraint("Chains", "chains", kinds=["Secret"]),
            policies.constraint("Careful", "careful", kinds=["Pod"]),
            policies.constraint("ByChance", "by-chance", kinds=["Service"]),
        ]
        yield serving(folder, stack, [ASKS, CHAINS, CAREFUL, BY_CHANCE, *constraints, *providers])


JANE = {"username": "jane"}

numbers = itertools.count()


def answer_in_policy(server: Server, provider: str, *keys: str) -> dict[str, Any]:
    """Returns the provider's answer as a policy sees it; ``keys`` are new and not cached."""
    obj = thing("ConfigMap", namespace="default") | {"provider": provider, "keys": list(keys)}
    user = {"username": f"user-{next(numbers)}"}
    verdict = server.admit(obj, userInfo=user)
    assert not verdict["allowed"]
    assert verdict["status"]["code"] == 403
    answer: dict[str, Any] = json.loads(verdict["status"]["message"].partition("] ")[2])
    return answer


def new(rule: str) -> str:
    """A key of a rule that nobody has asked yet."""
    return f"{rule}/{next(numbers)}"


FAILS = {"responses": None, "errors": None, "status_code": 500, "count": 0}
SEND = "failed to send external data request: "
READ = "failed to read external data response: "
UNMARSHAL = "failed to unmarshal external data response: "


@pytest.mark.parametrize(
    ("provider", "rule", "begin", "more", "outcome"),
    [
        ("hasty", "hang", SEND, "context deadline exceeded", "timeout"),
        ("hasty", "slow60000", SEND, "context deadline exceeded", "timeout"),
        ("tardy", "late60000", READ, "context deadline exceeded", "timeout"),
        ("good", "drop", SEND, "EOF", "transport"),
        ("good", "cut", READ, "unexpected EOF", "transport"),
        ("large", "big", READ, "it is over 8388608 bytes", "too_large"),
        ("good", "redirect", SEND, "it redirects, which is not followed", "redirect"),
        ("good", "html", UNMARSHAL, "", "unreadable"),
        ("good", "plain", UNMARSHAL, "", "unreadable"),
        ("good", "none", UNMARSHAL, "", "unreadable"),
        ("good", "array", UNMARSHAL, "cannot unmarshal array", "unreadable"),
        ("good", "wrongitems", UNMARSHAL, "response.items", "unreadable"),
        ("good", "wrongerror", UNMARSHAL, "response.systemError", "unreadable"),
        ("good", "numbered", UNMARSHAL, "key", "unreadable"),
        ("good", "typed", UNMARSHAL, "error", "unreadable"),
        ("expired", "", SEND, "certificate has expired", "transport"),
        ("elsewhere", "", SEND, "IP address mismatch", "transport"),
        ("stranger", "", SEND, "failed to verify certificate", "transport"),
        ("plain", "", SEND, "context deadline exceeded", "timeout"),
        ("strict", "", SEND, "", "transport"),
        ("closed", "", SEND, "connection refused", "transport"),
        ("lost", "", SEND, "no such host", "transport"),
    ],
)
def test_a_fault_is_reported_to_the_policy_as_gatekeeper_tells_it_and_counted(
    server: Server, provider: str, rule: str, begin: str, more: str, outcome: str
) -> None:
    series = f'waddle_provider_requests_total{{outcome="{outcome}",provider="{provider}"}}'
    before = server.metric(series) or 0
    answer = answer_in_policy(server, provider, new("known"), new(rule))
    error = answer.pop("system_error")
    assert answer == FAILS
    assert error.startswith(begin)
    assert more in error
    assert (server.metric(series) or 0) == before + 1
    # It is nobody else's fault.
    assert answer_in_policy(server, "good", new("known"))["status_code"] == 200


@pytest.mark.parametrize("provider", ["nowhere", "", "unencrypted"])
def test_a_provider_that_is_unknown_or_cannot_be_used_is_reported_to_the_policy(
    server: Server, provider: str
) -> None:
    answer = answer_in_policy(server, provider, "nginx")
    assert answer == {
        **FAILS,
        "status_code": 400,
        "system_error": "key is not found in provider cache",
    }


def test_a_provider_that_cannot_be_used_is_named_with_the_reason(server: Server) -> None:
    fault = server.wait_for("policy cannot be used")["fault"]
    assert fault.endswith("Provider unencrypted: only HTTPS scheme is supported for Providers")


def test_no_timeout_is_five_seconds(server: Server) -> None:
    assert answer_in_policy(server, "timeless", new("known"))["status_code"] == 200


def test_items_are_reported_as_they_are(server: Server) -> None:
    good, bad, gone = new("known"), new("error"), new("missing")
    answer = answer_in_policy(server, "good", good, bad, gone)
    assert answer["responses"] == [[good, f"{good} is known"]]
    assert answer["errors"] == [[bad, f"{bad} is refused"]]
    other = new("other")
    assert answer_in_policy(server, "good", other)["responses"] == [
        [f"instead of {other}", "other"]
    ]
    null = new("null")
    assert answer_in_policy(server, "good", null)["responses"] == [[null, None]]
    status = new("status503")
    assert answer_in_policy(server, "good", status)["status_code"] == 503


def test_one_failing_key_of_many_fails_its_own_request_alone(server: Server) -> None:
    """Real providers fail whole requests: those of another template or review go on."""
    many = [new("known") for _ in range(200)]
    failing = new("system")
    answer = answer_in_policy(server, "good", *many, failing)
    assert answer["system_error"] == f"{failing} cannot be looked up"
    assert answer["responses"] == []
    assert answer_in_policy(server, "good", *many)["count"] == 200


def test_ten_thousand_keys_are_not_asked_for(server: Server, good: ProviderProcess) -> None:
    before = len(good.requests())
    answer = answer_in_policy(server, "good", *(f"key-{number}" for number in range(10_000)))
    error = answer.pop("system_error")
    assert answer == FAILS
    assert error == "10000 keys are asked for at once, and 1000 may be"
    assert len(good.requests()) == before


def test_a_chain_of_keys_ends_after_the_rounds_and_says_so(
    server: Server, good: ProviderProcess
) -> None:
    def verdict(length: int) -> str:
        name = next(numbers)
        obj = thing("Secret", namespace="default") | {"chain": f"chain{length}/{name}"}
        answer = server.admit(obj)
        assert not answer["allowed"]
        return str(answer["status"]["message"])

    before = len(good.requests())
    assert "already asked 4 times" in verdict(20)
    assert len(good.requests()) - before == 4


def test_a_key_made_of_the_time_and_of_chance_is_asked_once(
    server: Server, good: ProviderProcess
) -> None:
    """A review that is evaluated again sees the time and the chance that it saw before."""
    before = len(good.requests())
    verdict = server.admit(thing("Service", namespace="default"))
    assert verdict["status"]["message"] == "[by-chance] heard of 1, "
    assert len(good.requests()) == before + 1


def test_who_never_answers_delays_nobody_else(server: Server) -> None:
    """Half a hundred wait for it, and every other request is answered meanwhile."""
    with ThreadPoolExecutor(50) as pool:
        waiting = [pool.submit(answer_in_policy, server, "silent", new("hang")) for _ in range(50)]
        until(
            lambda: (server.metric("waddle_provider_requests_under_way") or 0) >= 50,
            "all wait for it",
        )
        for number in range(20):
            pod = thing("Pod", namespace="default") | {"image": f"nginx:{number}"}
            assert server.admit(pod)["allowed"]
        assert not any(one.done() for one in waiting)
        for one in waiting:
            assert "context deadline exceeded" in one.result()["system_error"]


@pytest.mark.parametrize(
    "controller",
    ["system:serviceaccount:kube-system:replicaset-controller", "system:kube-controller-manager"],
)
def test_keys_of_one_namespace_suspend_a_provider_for_no_pod_of_another(
    server: Server, controller: str
) -> None:
    """The same controllers create the Pods of every namespace."""
    user, attempt = {"username": controller}, next(numbers)

    def message(key: str, namespace: str) -> str:
        obj = thing("ConfigMap", namespace=namespace) | {"provider": "shared", "keys": [key]}
        verdict = server.admit(obj, userInfo=user, namespace=namespace)
        return str(verdict["status"]["message"])

    with ThreadPoolExecutor(5) as pool:
        keys = [new("hang") for _ in range(5)]
        for answer in pool.map(lambda key: message(key, f"of-{attempt}"), keys):
            assert "context deadline exceeded" in answer
    assert "is known" in message(new("known"), f"beside-{attempt}")


def test_readyz_names_a_provider_that_is_down(good: ProviderProcess, tmp_path: Path) -> None:
    """After some faults in a row it is hardly asked; the reason and the next step are there."""
    down = good.manifest("down", url=f"https://127.0.0.1:{free_port()}/")
    asks = policies.constraint("Asks", "asks", kinds=["ConfigMap"])
    with ExitStack() as stack:
        server = serving(tmp_path, stack, [ASKS, asks, down])

        def notes() -> str:
            answer_in_policy(server, "down", new("down"))
            return server.get("health", "/readyz?verbose").body.decode()

        until(lambda: "[!]the provider down is hardly asked any more" in notes(), "it is named")
        assert "connection refused" in notes()
        assert "look at its Pods" in notes()
        assert server.metric('waddle_providers_suspended{provider="down"}') == 1


def test_readyz_names_a_provider_that_hangs_for_a_single_user(tmp_path: Path) -> None:
    """All requests of that user are refused, and only their answers said why."""
    asks = policies.constraint("Asks", "asks", kinds=["ConfigMap"])
    with ExitStack() as stack:
        process = ProviderProcess(tmp_path / "hanging", authority=make_authority())
        hanging = stack.enter_context(process).manifest("hanging")
        server = serving(tmp_path, stack, [ASKS, asks, hanging])
        with ThreadPoolExecutor(5) as pool:
            objects = [
                thing("ConfigMap", namespace="default")
                | {"provider": "hanging", "keys": [new("hang")]}
                for _ in range(5)
            ]
            for verdict in pool.map(lambda obj: server.admit(obj, userInfo=JANE), objects):
                assert "context deadline exceeded" in verdict["status"]["message"]
        assert (
            "[!]the provider hanging is hardly asked any more for 1 user, since it failed for them "
            "again and again" in server.get("health", "/readyz?verbose").body.decode()
        )
        event = server.wait_for("provider suspended for a user: it failed repeatedly")
        assert (event["provider"], event["username"]) == ("hanging", JANE["username"])


def test_what_is_not_vouched_for_is_denied_whatever_the_provider_does(server: Server) -> None:
    """A policy that says what it accepts denies at each fault."""
    for rule in ("drop", "plain", "system", "error", "null", "missing", "other", "wrongitems"):
        pod = thing("Pod", namespace="default") | {"image": new(rule)}
        verdict = server.admit(pod)
        assert not verdict["allowed"], rule
        assert "nobody vouches for it" in verdict["status"]["message"]
    pod = thing("Pod", namespace="default") | {"image": new("known")}
    assert server.admit(pod)["allowed"]


def test_a_provider_that_restarts_between_two_rounds_is_asked_again(
    folder: Path, good: ProviderProcess, tmp_path: Path
) -> None:
    """The first round waits for another provider meanwhile; what was answered before counts."""
    number = next(numbers)
    obj = thing("Secret", namespace="default") | {"chain": f"chain2/{number}"}
    obj |= {"provider": "silent", "keys": [f"hang/{number}"]}
    with ExitStack() as stack:
        silent = stack.enter_context(
            ProviderProcess(tmp_path / "silent", authority=make_authority())
        )
        (tmp_path / "pair").symlink_to(folder / "pair")
        constraints = [
            policies.constraint(kind, "c", kinds=["Secret"]) for kind in ("Asks", "Chains")
        ]
        providers = [good.manifest("good", timeout=30), silent.manifest("silent", timeout=60)]
        server = serving(tmp_path, stack, [ASKS, CHAINS, *constraints, *providers])
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.admit, obj)
            until(
                lambda: (
                    server.metric(
                        'waddle_provider_requests_total{outcome="success",provider="good"}'
                    )
                    and silent.requests()
                ),
                "the first round is asked, and answered in part",
            )
            good.restart()
            silent.stop()
            message = answer.result()["status"]["message"]
    assert "already asked 4 times" in message
    keys = [key for request in good.requests() for key in request["keys"]]
    own_keys = [key for key in keys if key.endswith(f"/{number}")]
    assert own_keys == [f"chain{left}/{number}" for left in (2, 1, 0)]


def test_a_provider_that_is_deleted_between_two_rounds_is_unknown_in_the_second(
    folder: Path, good: ProviderProcess, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        known = [CHAINS, ASKS]
        constraints = [
            policies.constraint("Chains", "chains", kinds=["Secret"]),
            policies.constraint("Asks", "asks", kinds=["ConfigMap"]),
        ]
        (tmp_path / "pair").symlink_to(folder / "pair")
        server = serving(tmp_path, stack, [*known, *constraints])
        file = tmp_path / "policies" / "provider.yaml"
        file.write_text(json.dumps(good.manifest("good", timeout=30)))
        until(
            lambda: answer_in_policy(server, "good", new("known"))["status_code"] == 200,
            "it is known",
        )
        chain = f"slow3000/{next(numbers)}"
        obj = thing("Secret", namespace="default") | {"chain": chain}
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.admit, obj)
            until(
                lambda: any(chain in one["keys"] for one in good.requests()),
                "the first round is asked",
            )
            file.unlink()
            until(
                lambda: answer_in_policy(server, "good", new("known"))["status_code"] == 400,
                "it is gone",
            )
            message = answer.result()["status"]["message"]
        # The request is answered, and rules that use the answer find no key.
        assert "key is not found in provider cache" in message


def test_the_answer_to_ten_megabytes_is_never_held(server: Server) -> None:
    """Eight answers of ten megabytes at once leave less memory in use than their total size."""
    answer_in_policy(server, "large", new("big"))
    before = rss_bytes(server)
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: answer_in_policy(server, "large", new("big")), range(8)):
            assert answer["status_code"] == 500
    assert rss_bytes(server) - before < 8 * LARGE_BYTES


def rss_bytes(server: Server) -> int:
    """Resident memory now."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * 4096
