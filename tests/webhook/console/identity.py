"""A small OpenID provider as a process of its own, for tests of who signs in: ``python -m ... ISSUER_PORT``.

It keeps to OpenID Connect Core 1.0 and RFC 7636, and refuses what a client does wrong. What a test says
to ``/faults`` is wrong with it from then on.
"""

import base64
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import uvicorn
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.patience import PATIENCE_SECONDS

CLIENT, SECRET = "waddle-console", "a secret/of: the console's"


class Provider:
    """The state of an OpenID provider: users, issued codes, keys, and configured faults."""

    def __init__(self, issuer: str, users: dict[str, dict[str, Any]]) -> None:
        self.issuer = issuer
        self.users = users
        self.codes: dict[str, dict[str, str]] = {}
        self.faults: dict[str, Any] = {}
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}, private=True)
        self.has_new = False
        self.strange = 0
        self.new = ECKey.generate_key("P-256", {"kid": "two", "use": "sig"}, private=True)

    def routes(self) -> list[Route]:
        """Returns the routes of an OpenID provider."""
        return [
            Route("/.well-known/openid-configuration", self._metadata),
            Route("/keys", self._keys),
            Route("/strange-keys", self._strange_keys),
            Route("/authorize", self._authorize, methods=["GET", "POST"]),
            Route("/token", self._token, methods=["POST"]),
            Route("/bye", lambda _: HTMLResponse("<h1>Gone</h1>")),
            Route("/faults", self._fault, methods=["POST"]),
        ]

    def _metadata(self, request: Request) -> Response:
        del request
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/bye",
            "scopes_supported": ["openid", "email", "groups"],
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return JSONResponse(document | self.faults.get("metadata", {}))

    def _keys(self, request: Request) -> Response:
        del request
        self.has_new |= self.faults.get("sign") == "rotated"
        keys: list[Any] = [self.key, self.new] if self.has_new else [self.key]
        return JSONResponse(KeySet(keys).as_dict(private=False))

    async def _fault(self, request: Request) -> Response:
        self.faults = await request.json()
        return JSONResponse({})

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        wrong = [
            name
            for name, value in {
                "client_id": CLIENT,
                "response_type": "code",
                "code_challenge_method": "S256",
            }.items()
            if query.get(name) != value
        ]
        wrong += [name for name in ("state", "nonce", "code_challenge") if not query.get(name)]
        if wrong or "profile" in query["scope"].split():
            return HTMLResponse(f"wrong: {wrong}", 400)
        if request.method == "GET":
            return HTMLResponse(
                '<h1>Who are you?</h1><form method="post"><input name="user"><button>Go</button></form>'
            )
        if "error" in self.faults:
            parameters = {"error": self.faults["error"], "error_description": "<b>no</b>"}
        else:
            user = parse_qs((await request.body()).decode())["user"][0]
            code = os.urandom(16).hex()
            self.codes[code] = {**query, "user": user}
            parameters = {"code": code, "iss": self.issuer} | self.faults.get("answer", {})
        answer = urlencode({"state": query["state"], **parameters})
        return RedirectResponse(f"{query['redirect_uri']}?{answer}", 303)

    async def _token(self, request: Request) -> Response:
        pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
        name, _, secret = pair.partition(":")
        if (unquote(name), unquote(secret)) != (CLIENT, SECRET):
            return JSONResponse({"error": "invalid_client"}, 401)
        form = {name: one[0] for name, one in parse_qs((await request.body()).decode()).items()}
        begun = self.codes.pop(form.get("code", ""), None)  # once
        if (
            begun is None
            or form.get("redirect_uri") != begun["redirect_uri"]
            or create_s256_code_challenge(form.get("code_verifier", "")) != begun["code_challenge"]
        ):
            return JSONResponse({"error": "invalid_grant", "error_description": "used"}, 400)
        now, access = int(time.time()), os.urandom(16).hex()
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": begun["user"],
            "iat": now,
            "exp": now + 300,
            "nonce": begun["nonce"],
            "at_hash": half_hash(access),
            **self.users.get(begun["user"], {}),
        }
        for name, value in self.faults.get("claims", {}).items():
            claims[name] = now + value if isinstance(value, int) else value
            if value is None:
                del claims[name]
        return JSONResponse(
            {"access_token": access, "token_type": "Bearer", "id_token": self._signed(claims)}
        )

    def _signed(self, claims: dict[str, Any]) -> str:
        match self.faults.get("sign"):
            case "stranger":
                key = RSAKey.generate_key(2048, {"kid": "one"}, private=True)
                return jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
            case "none":
                parts = [{"alg": "none"}, claims]
                texts = [base64.urlsafe_b64encode(json.dumps(one).encode()) for one in parts]
                return b".".join(one.rstrip(b"=") for one in texts).decode() + "."
            case "secret":  # by what a client that believes any algorithm would take for the key
                secret = OctKey.import_key(json.dumps(self.key.as_dict(private=False)))
                return jwt.encode({"alg": "HS256", "kid": "one"}, claims, secret)
            case "jwk" | "jku" | "x5c" | "x5u" | "crit" as field:
                return self._signed_by_another_key(field, claims)
            case "rotated":
                return jwt.encode({"alg": "ES256", "kid": "two"}, claims, self.new)
            case _:
                return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)

    def _signed_by_another_key(self, field: str, claims: dict[str, Any]) -> str:
        """By a key that the token itself brings, or says where to find."""
        key = RSAKey.generate_key(2048, {"kid": "own"}, private=True)
        public = key.as_dict(private=False)
        named = {
            "jwk": public,
            "jku": f"{self.issuer}/strange-keys",
            "x5c": [public["n"]],
            "x5u": f"{self.issuer}/strange-keys",
            "crit": ["jwk"],
        }
        header = {"alg": "RS256", "kid": "one", "typ": "JWT", field: named[field]}
        if field == "crit":
            header["jwk"] = public
        parts = [base64.urlsafe_b64encode(json.dumps(one).encode()) for one in (header, claims)]
        signed = b".".join(part.rstrip(b"=") for part in parts)
        made = key.private_key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return f"{signed.decode()}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"

    def _strange_keys(self, request: Request) -> Response:
        """Counts requests for these keys, which must not happen."""
        del request
        self.strange += 1
        return JSONResponse({"asked": self.strange})


def half_hash(text: str) -> str:
    """The left half of a digest, as ``at_hash`` has it."""
    digest = hashlib.sha256(text.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def main() -> None:
    """Serve on a port of the system's choice, which is printed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        issuer = f"http://localhost:{listening.getsockname()[1]}"
        provider = Provider(issuer, json.loads(sys.argv[1]))
        config = uvicorn.Config(Starlette(routes=provider.routes()), log_config=None)
        print(issuer, flush=True)
        uvicorn.Server(config).run([listening])


class RunningProvider:
    """The process, as tests see it."""

    def __init__(self, **users: dict[str, Any]) -> None:
        """``users`` have further claims, by their names."""
        command = [sys.executable, "-m", __name__, json.dumps(users)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ended = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        ended.start()
        self.issuer = self.process.stdout.readline().strip()
        ended.cancel()
        assert self.issuer, "the provider did not start"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def port(self) -> int:
        """Returns the port of the listener."""
        return int(urlsplit(self.issuer).port or 0)

    def have(self, **faults: Any) -> None:
        """Have these faults from now on, and no others."""
        request = urllib.request.Request(
            f"{self.issuer}/faults", json.dumps(faults).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS):
            pass


def strange_key_requests(provider: RunningProvider) -> int:
    """Returns the number of requests for keys that only a token names, with this one."""
    with urllib.request.urlopen(
        f"{provider.issuer}/strange-keys", timeout=PATIENCE_SECONDS
    ) as raised:
        return int(json.load(raised)["asked"])


if __name__ == "__main__":
    main()
