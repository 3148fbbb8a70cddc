"""Asking what is in synced objects, by policies to be validated."""

from collections.abc import Iterator

from loadtest.drill.drill import Row, server

GUESSES = 152


def run() -> Iterator[Row]:
    """Without credentials, where nothing was enabled."""
    with server() as running:
        answered = sum(
            running.post(b"{}", "/v1/validate-policy").status == 200 for _ in range(GUESSES)
        )
        yield Row("152 guesses at a secret", "answered", answered, 0)
