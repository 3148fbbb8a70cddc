"""Replicas under load while policies change: every answer is right, all the while."""

from functools import partial
from typing import Any

from tests.patience import until
from tests.repeating import BREATH_SECONDS, Repeating
from tests.system.proxy import Proxy
from tests.system.replicas import Plane, Replica, config_map, constraint, template

CHANGES = 60
KINDS = ("MovingOne", "MovingTwo")

REVISION = """
package moving
violation[{"msg": msg}] {
  input.review.object.data.deny == input.parameters.word
  msg := sprintf("revision %d denies %%v", [input.parameters.word])
}
"""


class ReviewBatch:
    """Asks one replica for a ConfigMap that one policy denies, then for one that none does."""

    def __init__(self, replica: Replica, word: str) -> None:
        self._replica = replica
        self._word = word
        self.answered_count = 0
        self.wrong: list[str] = []

    def __call__(self) -> None:
        try:
            denied = self._replica.admit(config_map(self._word))
            allowed = self._replica.admit(config_map("named by none"))
        except Exception as error:  # noqa: BLE001  # whatever it is, an answer is missing
            self.wrong.append(f"{type(error).__name__}: {error}")
            return
        message = denied.get("status", {}).get("message", "")
        if denied["allowed"] or message != f"[{self._word}] denied by {self._word}":
            self.wrong.append(str(denied))
        if not allowed["allowed"]:
            self.wrong.append(str(allowed))
        self.answered_count += 1


def moving(kind: str, number: int) -> dict[str, Any]:
    """A template whose source is another with each number."""
    return template(kind, REVISION % number)


def says(replica: Replica, word: str, message: str) -> bool:
    """Whether a replica denies a ConfigMap with the word by just this message."""
    verdict = replica.admit(config_map(word))
    return bool(verdict.get("status", {}).get("message") == message)


def denies_first(replica: Replica) -> bool:
    """Whether it enforces the first constraint of each kind, and so has the templates."""
    message = replica.admit(config_map("first")).get("status", {}).get("message", "")
    return bool(message.count("revision 0 denies first") == len(KINDS))


def test_load_goes_on_through_changes_of_templates_and_constraints(
    plane: Plane, trio: list[Replica], proxy: Proxy
) -> None:
    """No answer is missing or wrong, whatever changes; what was applied last is enforced by all."""
    proxy.replicas = trio
    plane.put_template(template("Staying"))
    plane.put_constraint(constraint("stays", "stays", "Staying"))
    revisions = dict.fromkeys(KINDS, 0)
    for kind in KINDS:
        plane.put_template(moving(kind, 0))
        plane.put_constraint(constraint("first", "first", kind))
    for replica in trio:
        until(partial(replica.denies, "stays"), "what stays is enforced")
        until(partial(denies_first, replica), "both that move are")
    plane.register(proxy.port)
    words: dict[tuple[str, str], str] = {}
    batches = [ReviewBatch(replica, "stays") for replica in trio]
    try:
        with Repeating(*batches, pause_seconds=BREATH_SECONDS):
            for number in range(1, CHANGES + 1):
                kind, name = KINDS[number % 2], f"moving-{number % 6}"
                if number % 10 == 0:
                    revisions[KINDS[number % 20 // 10]] = number
                    plane.put_template(moving(KINDS[number % 20 // 10], number))
                elif number % 9 == 0 and (kind, name) in words:
                    plane.delete_constraint(name, kind)
                    del words[kind, name]
                else:
                    words[kind, name] = f"word-{number}"
                    plane.put_constraint(constraint(name, words[kind, name], kind))
            for (kind, name), word in words.items():
                message = f"[{name}] revision {revisions[kind]} denies {word}"
                for replica in trio:
                    until(partial(says, replica, word, message), f"{replica.name} says {message}")
        assert [wrong for batch in batches for wrong in batch.wrong] == []
        assert all(batch.answered_count for batch in batches)
        assert len(words) < 6
        assert all(revisions.values())
    finally:
        plane.unregister()
        for name in ("staying", *(kind.lower() for kind in KINDS)):
            plane.delete_template(name)
