"""Synced objects are kept as far as templates read them, and a template that reads more waits for it."""

import asyncio
from typing import Any

import pytest

from tests import policies
from tests.simulation.cluster_users import CONFIG
from tests.simulation.control_plane import CONFIG_MAPS
from tests.webhook.controllers.session import NAMESPACE, TEMPLATES, Session, session
from webhook.constraint.review import AugmentedObject
from webhook.controllers.apply import projection

CONFIGS = "config.gatekeeper.sh", "configs"


def reader(kind: str, path: str) -> Any:
    """A template that denies an object by what a ConfigMap says at a path."""
    rego = f"""package reader
violation[{{"msg": msg}}] {{
  of := data.inventory.namespace[_].v1.ConfigMap[_]
  of.{path} == "no"
  msg := "{kind}"
}}"""
    return policies.template(kind, rego)


def put(made: Session, name: str, **fields: Any) -> None:
    body = {"metadata": {"name": name, "labels": {"long": "x" * 1000}}, **fields}
    made.storage.create(CONFIG_MAPS, NAMESPACE, body)


def config_maps(made: Session) -> dict[str, Any]:
    """What policies see of ConfigMaps now."""
    revision = made.serving.revision
    inventory: Any = {} if revision is None else revision.snapshot.inventory
    for name in ("namespace", NAMESPACE, "v1", "ConfigMap"):
        inventory = inventory.get(name) or {}
    return dict(inventory)


def messages(made: Session) -> list[str]:
    """What the policies in force say of some Pod."""
    assert made.serving.revision is not None
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}
    return sorted(one.msg for one in made.serving.revision.snapshot.review(AugmentedObject(pod)).results)


async def enforce(made: Session, kind: str, path: str) -> None:
    """A template and a constraint of it are there; wait until it is in force."""
    made.make(*TEMPLATES, reader(kind, path))
    plural = "constraints.gatekeeper.sh", kind.lower()
    await made.until(lambda: plural in made.storage.kinds, "the constraint's kind")
    made.make(*plural, policies.constraint(kind, "c", kinds=["Pod"]))
    await made.until(lambda: made.serves(kind, "c"), "the constraint in force")


def begin(made: Session) -> None:
    made.storage.create(made.storage.kinds[CONFIGS], NAMESPACE, CONFIG)
    put(made, "a", data={"word": "no", "other": "no"})
    put(made, "b", data={"word": "yes", "more": "no"})


def test_what_no_template_reads_is_not_kept_and_comes_before_one_that_does_is_in_force(tmp_path):
    async def run():
        async with session(tmp_path, "webhook", "generate", prepare=begin, projects=True) as made:
            await enforce(made, "Alpha", "data.word")
            kept = {"a": {"data": {"word": "no"}}, "b": {"data": {"word": "yes"}}}
            await made.until(lambda: config_maps(made) == kept, "what is read")
            assert messages(made) == ["Alpha"]

            put(made, "c", data={"word": "no", "other": "no", "more": "x"})
            await made.until(lambda: config_maps(made).get("c") == {"data": {"word": "no"}})

            # From the first moment on it finds what it reads of all objects.
            await enforce(made, "Beta", "data.other")
            assert messages(made) == ["Alpha", "Beta"]
            both = {"data": {"word": "no", "other": "no"}}
            assert config_maps(made) == {"a": both, "b": {"data": {"word": "yes"}}, "c": both}

    asyncio.run(run())


def test_a_new_generation_waits_for_what_it_reads_and_the_one_before_stays(tmp_path):
    async def run():
        async with session(tmp_path, "webhook", "generate", prepare=begin, projects=True) as made:
            await enforce(made, "Alpha", "data.word")
            made.storage.refused |= {"ConfigMap": 500}
            made.change(*TEMPLATES, "alpha", spec=reader("Alpha", "data.more")["spec"])

            def waits() -> bool:
                (status,) = [
                    one
                    for one in made.all("status.gatekeeper.sh", "constrainttemplatepodstatuses")
                ] or [{}]
                return "its data is synced: v1/ConfigMap" in str(status.get("status"))

            await made.until(waits, "a status that says what it waits for")
            assert messages(made) == ["Alpha"]

    asyncio.run(run())


def test_what_is_read_no_more_is_dropped_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(projection, "NARROW_SECONDS", 0.0)
    monkeypatch.setattr(projection, "LOOK_SECONDS", 0.0)

    async def run():
        async with session(tmp_path, "webhook", "generate", prepare=begin, projects=True) as made:
            await enforce(made, "Alpha", "data.word")
            await enforce(made, "Beta", "data.more")
            made.drop(*TEMPLATES, "alpha")
            kept = {"a": {"data": {}}, "b": {"data": {"more": "no"}}}
            await made.until(lambda: config_maps(made) == kept, "what is still read")
            assert messages(made) == ["Beta"]

    asyncio.run(run())
