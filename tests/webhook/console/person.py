"""A user with a browser: cookies as in RFC 6265, redirects are followed."""

import http.client
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urljoin, urlsplit

from tests.behaviour.serving import Answer
from tests.patience import PATIENCE_SECONDS

HTML = "text/html,application/xhtml+xml"


class Person:
    """Cookies belong to a host, whatever its port, as in browsers."""

    def __init__(self, console: str) -> None:
        """``console`` is its address."""
        self.console = console
        self.cookies: dict[str, str] = {}
        self.address = ""
        """The address of the last answer."""

    def ask(self, address: str, form: dict[str, str] | None = None, accept: str = HTML) -> Answer:
        """Sends a request without following redirects."""
        self.address = urljoin(self.console, address)
        parts = urlsplit(self.address)
        assert parts.hostname == "localhost"
        headers = {"Accept": accept}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={one}" for name, one in self.cookies.items())
        body = b""
        if form is not None:
            body = urlencode(form).encode()
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Origin"] = f"{parts.scheme}://{parts.netloc}"
        connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_SECONDS)
        try:
            where = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request("GET" if form is None else "POST", where, body, headers)
            response = connection.getresponse()
            self.cookies_set = response.headers.get_all("set-cookie") or []
            answer = Answer(response)
        finally:
            connection.close()
        for header in self.cookies_set:
            for name, item in SimpleCookie(header).items():
                if item["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = item.value
        return answer

    def go(self, address: str, form: dict[str, str] | None = None) -> Answer:
        """A page, wherever it is in the end."""
        answer = self.ask(address, form)
        for _ in range(10):
            if answer.status not in (302, 303):
                return answer
            answer = self.ask(urljoin(self.address, answer.headers["location"]))
        raise AssertionError(f"sent in a circle: {self.address}")

    def sign_in(self, user: str, to: str = "/") -> Answer:
        """Open a page, say at the provider who one is, and see what comes of it."""
        answer = self.go(to)
        assert b"Who are you?" in answer.body, (answer.status, answer.body)
        return self.go(self.address, {"user": user})

    def json(self, path: str) -> Answer:
        """A page's document."""
        return self.ask(path, accept="application/json")
