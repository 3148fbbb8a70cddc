"""Many objects at once, for clusters of a size."""

import http.client
import json
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

from tests.cluster import Api, ApiError, obeying
from tests.patience import PATIENCE_SECONDS

WRITERS = 8
"""Requests at once: the API server has two cores here, and so has whoever measures."""


Object = dict[str, Any]


def create(api: Api, requests: Iterable[tuple[str, Object]]) -> None:
    """Make objects, several at once; raises ApiError for the first that cannot be made.

    Each writer keeps its connection: a handshake costs more than what it is for.
    """
    waiting = iter(requests)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def write() -> None:
        connection = http.client.HTTPSConnection(
            api.server.removeprefix("https://"), context=api.context, timeout=PATIENCE_SECONDS
        )
        try:
            while not errors:
                with lock:
                    following = next(waiting, None)
                if following is None:
                    return
                obeying(partial(_post, connection, *following))
        except (OSError, ApiError, http.client.HTTPException) as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _post(connection: http.client.HTTPSConnection, path: str, document: Object) -> None:
    connection.request(
        "POST", path, json.dumps(document).encode(), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    body = answer.read().decode()
    if answer.status >= http.client.BAD_REQUEST:
        why = f"{path} {document['metadata']['name']}: {body}"
        raise ApiError(answer.status, why, answer.getheader("Retry-After"))
