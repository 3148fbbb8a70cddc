"""`waddle console` with a login: a real provider's process on loopback, and what its users may see."""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.consoles import CONSTRAINTS, in_namespace, template
from tests.patience import PATIENCE_SECONDS, until
from tests.webhook.console.assembled import KIND, pod, policy, report
from tests.webhook.console.identity import (
    CLIENT,
    SECRET,
    RunningProvider,
    strange_key_requests,
)
from tests.webhook.console.listing import Listing
from tests.webhook.console.person import Person
from tests.webhook.console.running import RunningConsole
from tests.webhook.console.signing import signing
from webhook.cli.cluster_access import TEMPLATES
from webhook.cluster.kinds import PODS
from webhook.reports.report_api import WGPOLICY

GROUPS = {"email": "ada@example.com", "groups": ["developers", "system:masters"]}
PAGES = ("/", "/policies", "/violations", "/resource", "/decisions", "/rollouts", "/playground")


@pytest.fixture(scope="module")
def provider() -> Iterator[RunningProvider]:
    with RunningProvider(
        ada=GROUPS, unverified={"email": "x@example.com", "email_verified": False}
    ) as running:
        yield running


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listing]:
    with Listing(tmp_path_factory.mktemp("listing"), KIND) as served:
        served.put(TEMPLATES, template())
        served.put(CONSTRAINTS, policy())
        served.put(PODS, in_namespace(pod("replica-a")))
        for namespace in ("shop", "bank"):
            one = report(f"web-{namespace}", {"result": "fail", "message": f"no-{namespace}"})
            one["metadata"]["namespace"] = one["scope"]["namespace"] = namespace
            served.put(WGPOLICY.namespaced, one)
        yield served


def of(listing: Listing) -> list[str]:
    """The flags that name an API server, and how its users are called there."""
    return [
        f"--kubeconfig={listing.kubeconfig}",
        "--oidc-username-claim=email",
        "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=oidc:",
    ]


@pytest.fixture(scope="module")
def console(
    tmp_path_factory: pytest.TempPathFactory, provider: RunningProvider, listing: Listing
) -> Iterator[RunningConsole]:
    with signing(tmp_path_factory.mktemp("login"), provider, of(listing)) as running:
        yield running


@pytest.fixture
def person(
    console: RunningConsole, provider: RunningProvider, listing: Listing
) -> Iterator[Person]:
    provider.have()
    listing.granted = set()
    yield Person(console.address)
    provider.have()


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_sees_nothing_and_is_sent_to_the_provider(person: Person, path: str):
    sent = person.ask(path)
    assert (sent.status, sent.headers["location"]) == (303, f"/login?to={path.replace('/', '%2F')}")
    assert person.json(path).status == 401
    assert person.ask("/playground", {"mode": "cel", "policy": "1"}).status == 401
    assert person.json("/events").status == 401
    for form in ("csv", "sarif"):
        assert person.json(f"/violations?format={form}").status == 401


def test_probes_and_styles_need_no_login(person: Person):
    for path in ("/healthz", "/readyz", "/static/console.css"):
        assert person.ask(path).status == 200


def test_one_who_signs_in_comes_back_to_the_page_that_was_asked_for(person: Person):
    page = person.sign_in("ada", "/violations?q=no-shop")
    assert page.status == 200
    assert person.address.endswith("/violations?q=no-shop")
    assert b"ada@example.com" in page.body
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    [sealed] = person.cookies.values()
    # A whole address: three letters stand in a random text by chance, once in 400.
    assert "ada@example.com" not in sealed
    assert b"ada@example.com" not in base64.urlsafe_b64decode(sealed + "==")


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(person: Person):
    person.ask("/login")
    assert re.fullmatch(
        r"waddle-sign-in-\w{12}=[\w-]+; Path=/; Max-Age=600; HttpOnly; SameSite=Lax",
        person.cookies_set[0],
    )
    person.sign_in("ada")
    # Cookies of an https:// address are in test_login.
    assert "; HttpOnly; SameSite=Lax" in str(person.cookies_set) or person.cookies


def test_what_a_user_sees_is_what_the_user_or_a_group_of_the_user_may_read(
    person: Person, listing: Listing
):
    person.sign_in("ada")
    found = person.json("/policies").json()
    assert found["policies"] == []
    assert "list constrainttemplates.templates.gatekeeper.sh" in found["shown"]["hidden"]
    assert b"There is no policy that you may read" in person.ask("/").body
    assert person.json("/violations").json()["known"] is False
    assert b"no-shop" not in person.ask("/violations").body
    assert person.json("/health").json()["replicas"] == []
    assert person.json("/").json()["replicas"] is None
    assert b"You may not see the replicas" in person.ask("/health").body
    assert person.json(f"/policy?kind={KIND}&name=owner").status == 404
    assert {one["user"] for one in listing.reviews} == {"ada@example.com"}
    assert listing.reviews[-1]["groups"] == [
        "oidc:developers",
        "oidc:system:masters",
        "system:authenticated",
    ]


def test_a_right_to_one_namespace_shows_that_namespace_and_no_other(
    console: RunningConsole, tmp_path: Path, provider: RunningProvider, listing: Listing
):
    listing.granted = {
        ("oidc:developers", "wgpolicyk8s.io", "policyreports", "shop"),
        ("ada@example.com", "constraints.gatekeeper.sh", KIND.lower(), ""),
    }
    # A console of its own: answers are remembered for half a minute.
    with signing(tmp_path, provider, of(listing)) as fresh:
        person = Person(fresh.address)
        person.sign_in("ada")
        until(lambda: person.json("/violations").json()["rows"], "the violation")
        [row] = person.json("/violations").json()["rows"]
        assert (row["namespace"], row["message"]) == ("shop", "no-shop")
        for path in (
            "/violations",
            "/violations?group=namespace",
            "/",
            "/violations?namespace=bank",
        ):
            shown = person.ask(path).body
            # The page repeats the address's filter, as a choice without results.
            for filter_text in (b"namespace=bank", b'value="bank"', b">bank (0)<"):
                shown = shown.replace(filter_text, b"")
            assert b"bank" not in shown
        assert b"no-bank" not in person.ask("/violations?format=csv").body
        assert b"no-bank" not in person.ask("/violations?format=sarif").body
        # It lists kinds one by one: who has violations may have no policies yet.
        until(lambda: person.json("/policies").json()["policies"], "the constraint")
        names = [one["name"] for one in person.json("/policies").json()["policies"]]
        assert names == ["owner"], "the constraint, and not its template"
        # A session's cookie is good at another console with the same key, whose people are the same.
        # What she may by now is asked, and remembered for others' tests.
        listing.granted = set()
        other = Person(console.address)
        other.cookies = dict(person.cookies)
        assert other.json("/").status == 200


def test_answers_are_remembered(person: Person, listing: Listing):
    person.sign_in("ada")

    def is_remembered() -> bool:
        before = len(listing.reviews)
        person.ask("/")
        return len(listing.reviews) == before

    # Some may be half a minute old just then, or of a kind that was not followed before.
    until(is_remembered, "nothing is asked for another page")


def test_signing_out_ends_the_session(person: Person):
    person.sign_in("ada")
    left = person.ask("/logout", {})
    assert left.status == 200
    assert b"/bye?client_id=waddle-console" in left.body
    assert person.cookies == {}
    assert person.json("/").status == 401
    assert person.ask("/logout").status == 405, "no picture of another site's signs anybody out"


def alert_text(answer: Any) -> str:
    """Returns the text of the page's alert."""
    found = re.search(r'role="alert"><bdi>(.*?)</bdi>', answer.body.decode(), re.DOTALL)
    assert found, answer.body
    return found[1]


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"error": "access_denied"}, "the provider refused: access_denied: &lt;b&gt;no"),
        ({"claims": {"nonce": "another"}}, "for another sign-in (nonce)"),
        ({"claims": {"nonce": None}}, "lacks nonce"),
        ({"claims": {"aud": "another"}}, "for another client (aud)"),
        ({"claims": {"aud": [CLIENT, "b"], "azp": "b"}}, "for another client (azp)"),
        ({"claims": {"iss": "https://evil.example"}}, "for another issuer (iss)"),
        ({"claims": {"at_hash": "x"}}, "for another access token"),
        ({"claims": {"exp": -61}}, "the clocks of the provider and of the console differ"),
        ({"claims": {"iat": 300}}, "the clocks of the provider and of the console differ"),
        ({"claims": {"exp": None}}, "lacks exp"),
        ({"claims": {"exp": "soon"}}, "exp"),
        ({"claims": {"email": None}}, "has no email"),
        ({"claims": {"email": ["a"]}}, "has no email"),
        ({"claims": {"email": "system:admin"}}, "a name of Kubernetes&#39; own"),
        ({"claims": {"groups": [f"team-{i}" for i in range(1001)]}}, "more than 1000"),
        ({"sign": "stranger"}, "is invalid"),
        ({"sign": "none"}, "is invalid"),
        ({"sign": "secret"}, "is invalid"),
        *(({"sign": field}, "is invalid") for field in ("jwk", "jku", "x5c", "x5u", "crit")),
        ({"claims": {"email": "ada@example.org\n"}}, "has control characters"),
        ({"claims": {"email": "ada\0@example.org"}}, "has control characters"),
        ({"claims": {"groups": ["a\nb"]}}, "has control characters"),
        ({"answer": {"iss": "https://evil.example"}}, "of another provider"),
        ({"answer": {"code": ""}}, "neither a code nor an error"),
        ({"answer": {"code": "made-up"}}, "gave no token (400): invalid_grant: used"),
        ({"answer": {"state": "made-up"}}, "belongs to another browser"),
    ],
)
def test_a_sign_in_that_is_not_right_is_refused_and_reported_in_words(
    person: Person, provider: RunningProvider, faults: dict[str, Any], words: str
):
    provider.have(**faults)
    answer = person.sign_in("ada")
    assert answer.status in (400, 403)
    assert words in alert_text(answer)
    assert b"Sign in again" in answer.body
    assert "waddle" not in person.cookies


def test_keys_that_only_a_token_names_are_asked_of_nobody(
    person: Person, provider: RunningProvider
):
    before = strange_key_requests(provider)
    for field in ("jku", "x5u"):
        provider.have(sign=field)
        assert "is invalid" in alert_text(person.sign_in("ada"))
    assert strange_key_requests(provider) == before + 1


def test_an_address_that_is_not_verified_is_nobody_s(person: Person):
    assert "has not verified the address" in alert_text(person.sign_in("unverified"))


def test_clocks_may_differ_by_less_than_a_minute(person: Person, provider: RunningProvider):
    provider.have(claims={"iat": 30, "exp": -30})
    assert person.sign_in("ada").status == 200


def test_a_provider_that_has_new_keys_is_believed(person: Person, provider: RunningProvider):
    provider.have(sign="rotated")
    # Keys are looked for once in ten seconds, so that a made-up name for one costs nothing.
    until(lambda: Person(person.console).sign_in("ada").status == 200, "the new key")


def test_somebody_else_s_code_signs_nobody_in(person: Person, console: RunningConsole):
    other = Person(console.address)
    other.go("/")
    sent = other.ask(other.address, {"user": "ada"})
    answer = person.go(sent.headers["location"])
    assert "belongs to another browser" in alert_text(answer)
    assert person.json("/").status == 401


def test_an_answer_of_the_provider_s_is_used_once(person: Person):
    person.go("/")
    sent = person.ask(person.address, {"user": "ada"}).headers["location"]
    assert person.go(sent).status == 200
    person.cookies.pop("waddle")
    assert "belongs to another browser, is complete already" in alert_text(person.go(sent))


def test_two_windows_sign_in_beside_each_other(person: Person):
    person.go("/policies")
    first = person.address
    person.go("/violations")
    second = person.address
    assert person.go(first, {"user": "ada"}).status == 200
    assert person.address.endswith("/policies")
    assert person.go(second, {"user": "ada"}).status == 200
    assert person.address.endswith("/violations")


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "/login"]
)
def test_nobody_is_sent_to_another_site_after_signing_in(person: Person, to: str):
    person.go(f"/login?to={to}")
    person.go(person.address, {"user": "ada"})
    assert person.address.rstrip("/") == person.console


def test_a_cookie_that_was_changed_or_made_elsewhere_is_no_session(person: Person):
    person.sign_in("ada")
    good = person.cookies["waddle"]
    for bad in (good[:-2] + "xx", good[4:], "", "a", "\u00e9", "A" * 4000):
        person.cookies["waddle"] = bad.encode().decode("latin-1")
        assert person.json("/").status == 401
    begun = Person(person.console)
    begun.ask("/login")
    person.cookies["waddle"] = next(iter(begun.cookies.values()))
    assert person.json("/").status == 401, "what is sealed for another use"


def test_an_api_server_that_cannot_be_asked_shows_nothing_and_says_so(
    tmp_path: Path, provider: RunningProvider
):
    with Listing(tmp_path, KIND) as gone, signing(tmp_path, provider, of(gone)) as console:
        person = Person(console.address)
        gone.__exit__()
        answer = person.sign_in("ada")
        assert answer.status == 503
        assert "what you may read" in alert_text(answer)
        assert person.json("/policies").status == 503


def test_a_provider_that_is_not_there_is_reported_at_the_login(tmp_path: Path, listing: Listing):
    with RunningProvider() as provider:
        pass
    with signing(tmp_path, provider, of(listing)) as console:
        answer = Person(console.address).go("/")
        assert answer.status == 502
        assert "the provider cannot be reached" in alert_text(answer)
        assert Person(console.address).ask("/readyz").status == 200, "other replicas have no other"


def test_a_login_that_could_not_work_is_refused_at_the_start(tmp_path: Path):
    (tmp_path / "key").write_text("k" * 48)
    (tmp_path / "short").write_text("k")
    whole = {
        "--kubeconfig": "/nowhere",
        "--oidc-issuer-url": "https://issuer.example",
        "--oidc-client-id": "a",
        "--oidc-redirect-url": "https://console.example/callback",
        "--cookie-key-file": str(tmp_path / "key"),
    }
    for change, words in (
        ({"--oidc-client-id": None}, "also needs --oidc-client-id"),
        ({"--oidc-issuer-url": None}, "needs --oidc-issuer-url"),
        ({"--oidc-issuer-url": "http://issuer.example"}, "an https:// address"),
        ({"--oidc-redirect-url": "https://console.example/policies"}, "give another one"),
        ({"--cookie-key-file": str(tmp_path / "short")}, "a key has 32 to 4096 bytes"),
        ({"--kubeconfig": None, "--policies": str(tmp_path)}, "remove it for files"),
    ):
        flags = [f"{name}={value}" for name, value in {**whole, **change}.items() if value]
        command = [sys.executable, "-m", "webhook", "console", "--port=0", *flags]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
        assert ended.returncode == 64, (flags, ended.stderr)
        assert words in " ".join(ended.stderr.split()), ended.stderr


def test_no_secret_is_logged(console: RunningConsole, person: Person):
    person.sign_in("ada")
    log = json.dumps(console.events)
    assert SECRET not in log
    assert person.cookies["waddle"] not in log
