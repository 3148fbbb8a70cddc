"""Each malformed request gets a 4xx with the reason, and the next request is answered."""

import json

import pytest

from tests.behaviour.serving import Server, pod, read_all, review

HEAD = b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

MALFORMED_HTTP = {
    "no request at all": b"\r\n\r\nnonsense\r\n\r\n",
    "no method": b"/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "unknown method": b"BREW /v1/admit HTTP/1.1\r\nHost: x\r\n\r\n",
    "a version that does not exist": b"POST /v1/admit HTTP/7.3\r\nHost: x\r\n\r\n",
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no Host": b"POST /v1/admit HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    "two Hosts": b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}",
    "chunks twice": HEAD
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a target that is no path": b"POST nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a negative length": HEAD + b"Content-Length: -2\r\n\r\n{}",
    "a length that is no number": HEAD + b"Content-Length: two\r\n\r\n{}",
    "a length beyond any number": HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n{}",
    "length and chunks at once": HEAD
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk size that is no number": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "an unknown transfer coding": HEAD + b"Transfer-Encoding: gzip, brotli\r\n\r\n",
    "a NUL in a header": b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
    "a folded header": b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "a space before the colon": b"POST /v1/admit HTTP/1.1\r\nHost : x\r\n\r\n",
    "bare line feeds in the head": b"POST /v1/admit HTTP/1.1\nHost: x\nA\n\n",
}


@pytest.mark.parametrize("raw", MALFORMED_HTTP.values(), ids=MALFORMED_HTTP.keys())
def test_bytes_that_are_no_request_get_a_4xx(server: Server, raw: bytes) -> None:
    with server.raw() as connection:
        connection.sendall(raw)
        status = read_all(connection).split(b"\r\n")[0]
    assert status.startswith(b"HTTP/1.1 4"), status
    assert server.admit(pod(owner="me", team="a"))["allowed"] is True


def test_a_body_that_is_compressed_is_refused(server: Server) -> None:
    with server.raw() as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")


def test_a_protocol_upgrade_is_refused(server: Server) -> None:
    with server.raw() as connection:
        connection.sendall(
            b"GET /v1/admit HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        assert read_all(connection).startswith(b"HTTP/1.1 501 ")


def test_a_client_that_hangs_up_in_the_middle_harms_nobody(server: Server) -> None:
    for sent in (b"", b"POST", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{"):
        with server.raw() as connection:
            connection.sendall(sent)
    assert server.admit(pod(owner="me", team="a"))["allowed"] is True


def changed(path: str, value: object) -> bytes:
    """A review with one field replaced."""
    document = review(pod())
    owner: dict[str, object] = document
    *folders, last = path.split(".")
    for name in folders:
        owner = owner[name]  # type: ignore[assignment]
    owner[last] = value
    return json.dumps(document).encode()


DEEP = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"object":'

MALFORMED_REVIEWS = {
    "nothing": b"",
    "text": b"hello",
    "a half": json.dumps(review(pod())).encode()[:-20],
    "two documents": b"{}{}",
    "invalid UTF-8": b'{"kind":"\xff"}',
    "not a number": b'{"a":NaN}',
    "an array": b"[]",
    "null": b"null",
    "a number": b"1",
    "an empty object": b"{}",
    "another kind": changed("kind", "Pod"),
    "another group": changed("apiVersion", "v1"),
    "a version that does not exist": changed("apiVersion", "admission.k8s.io/v2"),
    "a kind that is no text": changed("kind", 1),
    "an apiVersion that is an object": changed("apiVersion", {}),
    "no request": changed("request", None),
    "a request that is text": changed("request", "x"),
    "a uid that is a number": changed("request.uid", 1),
    "an operation that is an array": changed("request.operation", []),
    "an object that is text": changed("request.object", "x"),
    "an old object that is an array": changed("request.oldObject", [1]),
    "a kind that is text": changed("request.kind", "Pod"),
    "a group that is a number": changed("request.kind", {"group": 1}),
    "dryRun that is text": changed("request.dryRun", "yes"),
    "userInfo that is an array": changed("request.userInfo", []),
    "a username that is an object": changed("request.userInfo", {"username": {}}),
    "nesting beyond reason": DEEP + b'{"a":' * 100_000 + b"1" + b"}" * 100_002,
    "arrays beyond reason": DEEP + b"[" * 1_000_000,
}


@pytest.mark.parametrize("body", MALFORMED_REVIEWS.values(), ids=MALFORMED_REVIEWS.keys())
@pytest.mark.parametrize("path", ["/v1/admit", "/v1/admitlabel"])
def test_a_body_that_is_no_review_gets_400_and_a_reason(
    server: Server, body: bytes, path: str
) -> None:
    answer = server.post(body, path)
    status = answer.json()
    assert answer.status == 400
    assert status["kind"] == "Status"
    assert status["code"] == 400
    assert status["message"]


ODD_OBJECTS = {
    "no object": None,
    "an empty object": {},
    "metadata that is text": {"apiVersion": "v1", "kind": "Pod", "metadata": "x"},
    "labels that are an array": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": [1]}},
    "labels that are numbers": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"a": 1}},
    },
    "a kind that is an object": {"apiVersion": "v1", "kind": {}, "metadata": {}},
    "an apiVersion with many slashes": {"apiVersion": "a/b/c", "kind": "Pod"},
    "a name that is null": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": None}},
    "a lone surrogate": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\ud800"}},
    "a huge number": {"apiVersion": "v1", "kind": "Pod", "spec": {"n": 10**400}},
}


@pytest.mark.parametrize("obj", ODD_OBJECTS.values(), ids=ODD_OBJECTS.keys())
@pytest.mark.parametrize("path", ["/v1/admit", "/v1/admitlabel"])
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE", "CONNECT", "", "PATCH"])
def test_an_odd_object_is_decided_or_refused_but_never_a_bug(
    server: Server, obj: object, path: str, operation: str
) -> None:
    document = review(pod(), operation=operation)
    document["request"] |= {"object": obj, "oldObject": obj}
    assert server.post(document, path).status in (200, 400)


@pytest.mark.parametrize("kind", ["ConstraintTemplate", "RequiredLabel", "Config"])
def test_odd_resources_of_gatekeeper_are_decided_or_refused(server: Server, kind: str) -> None:
    groups = {"ConstraintTemplate": "templates", "RequiredLabel": "constraints", "Config": "config"}
    api_version = f"{groups[kind]}.gatekeeper.sh/v1"
    for spec in (None, 1, "x", [], {"targets": 1}, {"targets": [1]}, {"match": 1}, {"crd": []}):
        obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
        assert server.post(review(obj)).status == 200


def test_another_content_type_gets_415(server: Server) -> None:
    answer = server.post(review(pod()), headers={"Content-Type": "text/plain"})
    assert answer.status == 415
    assert answer.json()["message"] == "contentType=text/plain, expected application/json"


def test_a_content_type_may_name_its_charset(server: Server) -> None:
    content_type = {"Content-Type": "application/json; charset=utf-8"}
    assert server.post(review(pod()), headers=content_type).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_gets_405(server: Server, method: str) -> None:
    answer = server.post(review(pod()), method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/admit/", "/v1/mutate", "/%2e%2e/etc", "/%ff"])
def test_another_path_gets_404(server: Server, path: str) -> None:
    assert server.post(review(pod()), path).status == 404


@pytest.mark.parametrize("timeout", ["x", "-1s", "1", "", "0s"])
def test_a_timeout_that_is_no_duration_gets_400(server: Server, timeout: str) -> None:
    answer = server.post(review(pod()), f"/v1/admit?timeout={timeout}")
    assert answer.status == (400 if timeout else 200)


def test_requests_sent_without_waiting_are_answered_in_order(server: Server) -> None:
    first = json.dumps(review(pod(owner="a", team="b"))).encode()
    second = json.dumps(review(pod(team="b"))).encode()
    with server.raw() as connection:
        connection.sendall(
            b"".join(
                HEAD + b"Content-Length: %d\r\n%b\r\n%b" % (len(body), last, body)
                for body, last in ((first, b""), (second, b"Connection: close\r\n"))
            )
        )
        found = read_all(connection)
    assert found.count(b"HTTP/1.1 200 OK") == 2
    assert found.index(b'"allowed":true') < found.index(b'"allowed":false')


def test_too_many_requests_sent_without_waiting_end_the_connection(server: Server) -> None:
    body = json.dumps(review(pod())).encode()
    with server.raw() as connection:
        connection.sendall((HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)) * 20)
        found = read_all(connection)
    assert 0 < found.count(b"HTTP/1.1 200 OK") < 20
    assert b"HTTP/1.1 400 " in found


def test_a_body_in_chunks_is_read_whole(server: Server) -> None:
    body = json.dumps(review(pod(team="b"))).encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, body[n : n + 1]) for n in range(len(body)))
    with server.raw() as connection:
        connection.sendall(
            HEAD
            + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            + chunks
            + b"0\r\n\r\n"
        )
        assert b"[needs-owner]" in read_all(connection)


def test_a_client_that_expects_100_continue_has_to(server: Server) -> None:
    body = json.dumps(review(pod(team="b"))).encode()
    with server.raw() as connection:
        connection.sendall(
            HEAD
            + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert b"[needs-owner]" in read_all(connection)


def test_http_1_0_is_answered_and_closed(server: Server) -> None:
    body = json.dumps(review(pod(team="b"))).encode()
    head = b"POST /v1/admit HTTP/1.0\r\nContent-Type: application/json\r\n"
    with server.raw() as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        found = read_all(connection)
    assert b"connection: close" in found
    assert b"[needs-owner]" in found
