"""``http.send`` against a server of this test's own."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from webhook.rego.builtins.http.client import HttpClient
from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError
from webhook.rego.run.limits import EvaluationContext


class Server(ThreadingHTTPServer):
    """A server with a test's answers, and the requests that it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.released = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers with what the test put under the path, or with what it was sent."""

    server: Server

    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        """Answer."""
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if self.path == "/slow":
            self.server.released.wait(30)
        status, headers, answer = self.server.answers.get(
            self.path, (200, {"Content-Type": "application/json"}, body or b'{"a": 1.50}')
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815  # the name that http.server calls


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.released.set()
        running.shutdown()
        thread.join()


def context(hosts=("127.0.0.1",), **given):
    client = HttpClient(None if hosts is None else frozenset(hosts))
    return EvaluationContext(services={"http": client}, **given)


def send(lent, request):
    return BUILTINS["http.send"].function(lent, request)


def test_it_is_off_unless_a_client_is_lent(server):
    with pytest.raises(BuiltinError, match="not enabled"):
        send(EvaluationContext(), {"method": "get", "url": server.url, "raise_error": False})
    assert not server.seen


def test_a_request_with_a_fault_is_refused_though_it_is_off():
    with pytest.raises(BuiltinError, match="missing required request parameters"):
        send(EvaluationContext(), {"method": "get"})


def test_a_response_is_decoded_by_its_type(server):
    found = send(context(), {"method": "post", "url": server.url, "body": {"b": [1]}})
    assert (found["status"], found["status_code"]) == ("200 OK", 200)
    assert (found["body"], found["raw_body"]) == ({"b": [1]}, '{"b":[1]}')
    assert found["headers"]["content-type"] == ["application/json"]


def test_a_body_that_is_no_json_is_null_when_json_was_forced(server):
    server.answers["/x"] = (404, {"Content-Type": "text/plain"}, b"no")
    request = {"method": "get", "url": f"{server.url}/x", "force_json_decode": True}
    found = send(context(), request)
    assert (found["status_code"], found["body"], found["raw_body"]) == (404, None, "no")


def test_equal_requests_of_a_query_are_sent_once(server):
    lent = context()
    request = {"method": "get", "url": server.url}
    assert send(lent, request) == send(lent, dict(request))
    assert len(server.seen) == 1


def test_a_response_is_kept_between_queries_as_long_as_the_request_says(server):
    client = HttpClient(None)
    request = {
        "method": "get",
        "url": server.url,
        "force_cache": True,
        "force_cache_duration_seconds": 60,
    }
    for _ in range(2):
        send(EvaluationContext(services={"http": client}), request)
    assert len(server.seen) == 1


def test_only_hosts_on_the_list_are_reached_also_by_redirection(server):
    server.answers["/away"] = (302, {"Location": "http://other.invalid/"}, b"")
    with pytest.raises(BuiltinError, match=r"disallowed host: 127\.0\.0\.1"):
        send(context(hosts=()), {"method": "get", "url": server.url})
    request = {"method": "get", "url": f"{server.url}/away"}
    assert send(context(), request)["status_code"] == 302
    with pytest.raises(BuiltinError, match=r"disallowed host: other\.invalid"):
        send(context(), request | {"enable_redirect": True})


@pytest.mark.parametrize("beyond", ["1", "9" * 5000])
def test_a_port_beyond_all_is_not_another_port(server, beyond):
    address, _, port = server.url.rpartition(":")
    wrong = f"{int(port) + 65536}" if beyond == "1" else beyond
    found = send(context(), {"method": "get", "url": f"{address}:{wrong}", "raise_error": False})
    assert found["error"]["message"] == (
        f'Get "{address}:{wrong}": dial tcp: address {wrong}: invalid port'
    )
    assert not server.seen


def test_a_timeout_is_an_error_or_a_result(server):
    request = {"method": "get", "url": f"{server.url}/slow", "timeout": "50ms"}
    with pytest.raises(BuiltinError, match=f"Get {server.url}/slow: request timed out"):
        send(context(), request)
    found = send(context(), request | {"raise_error": False})
    assert found["status_code"] == 0
    assert found["error"]["code"] == "eval_http_send_network_error"


def test_a_refused_connection_is_worded_as_go_words_it():
    request = {"method": "get", "url": "http://127.0.0.1:1/x", "raise_error": False}
    assert send(context(), request)["error"] == {
        "code": "eval_http_send_network_error",
        "message": (
            'Get "http://127.0.0.1:1/x": dial tcp 127.0.0.1:1: connect: connection refused'
        ),
    }


def test_the_querys_deadline_ends_a_request_before_its_own_timeout(server):
    lent = context(deadline=time.monotonic() + 0.05)
    with pytest.raises(BuiltinError, match="request timed out"):
        send(lent, {"method": "get", "url": f"{server.url}/slow", "timeout": "25s"})


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"method": "get"}, 'operand 1 missing required request parameters(s): {"url"}'),
        (
            {"method": "get", "url": "x", "foo": 1},
            'operand 1 invalid request parameters(s): {"foo"}',
        ),
        ({"method": 1, "url": "x"}, '"method" must be a string'),
        ({"method": "get", "url": "x", "headers": 1}, "invalid type for headers key"),
        ({"method": "get", "url": "x", "raise_error": 1}, "invalid value for raise_error field"),
        (
            {"method": "get", "url": "x", "force_cache": True},
            "'force_cache' set but 'force_cache_duration_seconds' parameter is missing",
        ),
    ],
)
def test_a_request_that_is_none_is_refused_in_opas_words(request_, message):
    with pytest.raises(BuiltinError) as caught:
        send(context(), request_)
    assert caught.value.message == message


def test_json_numbers_of_a_response_keep_their_text(server):
    found = send(context(), {"method": "get", "url": server.url})
    assert json.loads(found["raw_body"]) == {"a": 1.5}
    assert str(found["body"]["a"]) in ("1.50", "1.5")


def test_yaml_of_a_response_is_read_as_every_yaml_is(server):
    text = b"a: &a {b: 2020-01-01}\nc:\n  !!merge <<: *a\n"
    server.answers["/y"] = (200, {"Content-Type": "application/yaml"}, text)

    found = send(context(), {"method": "get", "url": f"{server.url}/y"})

    assert found["body"] == {"a": {"b": "2020-01-01"}, "c": {"b": "2020-01-01"}}
