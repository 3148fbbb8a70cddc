"""Cookies and names of who signs in: no browser, no provider."""

from pathlib import Path
from typing import Any

import pytest

from webhook.console.login import Login, own_place
from webhook.console.provider import ProviderOptions, is_safe_address, visitor_of
from webhook.console.sealing import InvalidKey, Sealer, read_key
from webhook.console.visitor import SignInRefused

KEY = b"k" * 48
ISSUER = "https://issuer.example"


def options(**fields: Any) -> ProviderOptions:
    return ProviderOptions(ISSUER, "me", "https://console.example/oidc/callback", **fields)


def login(now: float, **fields: Any) -> Login:
    return Login(options(**fields), Sealer(KEY), 60.0, now=lambda: now)


def test_a_session_ends_and_nobody_with_another_key_made_it():
    sealed = Sealer(KEY).seal("session", ["ada", ["a"], "Ada"], 160.0)
    cookie = f"other=1; __Host-waddle={sealed}"
    assert login(100.0).visitor(cookie).groups == ("a",)
    assert login(159.9).visitor(cookie) is not None
    assert login(160.0).visitor(cookie) is None
    assert Login(options(), Sealer(b"x" * 48), 60.0, now=lambda: 100.0).visitor(cookie) is None


def test_the_same_value_is_never_sealed_alike():
    sealer = Sealer(KEY)
    assert sealer.seal("session", ["a"], 1.0) != sealer.seal("session", ["a"], 1.0)


def test_what_is_sealed_for_one_use_is_good_for_no_other():
    sealer = Sealer(KEY)
    sealed = sealer.seal("sign-in", ["a"], 100.0)
    assert sealer.open("sign-in", sealed, 1.0) == ["a"]
    assert sealer.open("session", sealed, 1.0) is None


def test_a_cookie_of_an_https_console_is_of_its_host_alone():
    left = login(0.0).leave()
    assert left == "__Host-waddle=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"


@pytest.mark.parametrize("content", [b"", b"short", b"k" * 31, b"k" * 5000])
def test_a_key_that_is_none_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(InvalidKey, match="openssl rand"):
        read_key(tmp_path / "key")
    with pytest.raises(InvalidKey, match="No such file"):
        read_key(tmp_path / "none")


@pytest.mark.parametrize(
    ("claims", "fields", "user", "groups"),
    [
        ({"sub": "a"}, {}, f"{ISSUER}#a", ()),
        ({"sub": "a"}, {"username_prefix": "-"}, "a", ()),
        ({"sub": "a"}, {"username_prefix": "oidc:"}, "oidc:a", ()),
        ({"email": "a@b"}, {"username_claim": "email"}, "a@b", ()),
        ({"sub": "a", "g": "one"}, {"groups_claim": "g"}, f"{ISSUER}#a", ("one",)),
        ({"sub": "a", "g": ["x", 1, "y"]}, {"groups_claim": "g"}, f"{ISSUER}#a", ("x", "y")),
        ({"sub": "a", "g": ["x"]}, {}, f"{ISSUER}#a", ()),
        ({"sub": "a", "g": {"x": 1}}, {"groups_claim": "g"}, f"{ISSUER}#a", ()),
        ({"sub": "a", "g": ["system:masters"]}, {"groups_claim": "g"}, f"{ISSUER}#a", ()),
    ],
)
def test_users_are_called_as_the_api_server_s_flags_would_call_them(
    claims: Any, fields: Any, user: str, groups: tuple[str, ...]
):
    found = visitor_of(claims, options(**fields))
    assert (found.user, found.groups) == (user, (*groups, "system:authenticated"))


def test_a_prefix_makes_nobody_one_of_kubernetes_own():
    with pytest.raises(SignInRefused, match="Kubernetes' own"):
        visitor_of({"sub": "admin"}, options(username_prefix="system:"))


@pytest.mark.parametrize(
    ("back", "place"),
    [
        ("/policies?q=a", "/policies?q=a"),
        *(
            (one, "/")
            for one in ("", "policies", "//e", "/\\e", "https://e", "/a\nb", "/login?to=/")
        ),
        ("/" + "a" * 1000, "/"),
    ],
)
def test_one_comes_back_to_a_page_of_this_console_s(back: str, place: str):
    assert own_place(back) == place


@pytest.mark.parametrize(
    ("address", "is_safe"),
    [
        ("https://a.example/x", True),
        ("http://localhost:1/x", True),
        ("http://127.0.0.1", True),
        ("http://a.example", False),
        ("http://localhost.example", False),
        ("ftp://localhost", False),
        ("https://", False),
        ("https://[", False),
    ],
)
def test_secrets_are_sent_encrypted_or_stay_on_this_machine(address: str, is_safe: bool):
    assert is_safe_address(address) is is_safe


@pytest.mark.parametrize("end", ["\n", "\0", "\r", "\x1b[2J", "\x7f", "\x85", "\u2028", "\ud800"])
def test_a_name_of_more_than_a_line_signs_nobody_in(end: str):
    """Such a name would be written into logs, and used as a user of the cluster."""
    with pytest.raises(SignInRefused, match="has control characters") as refused:
        visitor_of({"sub": f"ada{end}"}, options(username_prefix="-"))
    assert end not in str(refused.value)
    with pytest.raises(SignInRefused, match="has control characters"):
        visitor_of({"sub": "ada", "g": ["x", f"y{end}"]}, options(groups_claim="g"))
    named = visitor_of({"sub": "山田\u3000太郎 O'Brien"}, options(username_prefix="-"))
    assert named.user == "山田\u3000太郎 O'Brien"
