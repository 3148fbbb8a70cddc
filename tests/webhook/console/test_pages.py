"""Each page, drawn: hostile texts stay texts, and nothing is needed that a page may lack."""

from html.parser import HTMLParser
from typing import Any

import pytest

from tests.policies import exception
from tests.webhook.console.pictures import (
    HOSTILE,
    SCRIPT,
    TURNING,
    constraint,
    hostile_picture,
    picture,
    template,
    violation,
)
from webhook.console import decisions, pages
from webhook.console.assembly import ClusterObjects, picture_of
from webhook.console.drawing import Drawing, visible
from webhook.console.picture import EMPTY, Picture
from webhook.console.visitor import Visitor

DRAWING = Drawing()
VISITOR = Visitor(SCRIPT, (SCRIPT,), SCRIPT)


class Elements(HTMLParser):
    """The elements of a page, its links, and its text as a reader sees it."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def around(shown: Picture) -> dict[str, Any]:
    return {
        "shown": pages.shown(shown, VISITOR),
        "query": {},
        "number": 1,
        "sarif": True,
        "clusters": (),
        "live": True,
        "is_page": True,
        "visitor": VISITOR,
        "login": True,
    }


def draw(name: str, shown: Picture, document: dict[str, Any]) -> Elements:
    return Elements(DRAWING.page(name, f"/{name}", around(shown), document))


DECISION = {
    "time": SCRIPT,
    "verdict": SCRIPT,
    "operation": SCRIPT,
    "kind": SCRIPT,
    "namespace": TURNING,
    "name": SCRIPT,
    "user": SCRIPT,
    "uid": SCRIPT,
    "replica": SCRIPT,
    "dryRun": True,
    "entry": SCRIPT,
    "results": [{"kind": SCRIPT, "name": SCRIPT, "action": SCRIPT, "message": SCRIPT}],
    "errors": [SCRIPT],
}


def live(text: str) -> dict[str, Any]:
    row = {"kind": text, "name": text, "action": text, "message": text}
    review = {"object": text, "error": "", "violations": [row], "notDecided": [text], "hidden": 1}
    return {"reviews": [review], "constraints": 1, "resourceVersion": text, "at": text}


def hostile_documents() -> list[tuple[str, dict[str, Any]]]:
    shown = hostile_picture()
    query = dict.fromkeys(("q", "policy", "namespace", "action", "kind", "category", "state"), "")
    found = [
        (
            "overview",
            {
                **pages.overview(shown, {}),
                "decisionLog": True,
                "denialsPerMinute": [0, 1],
                "newestMinute": 9,
            },
        ),
        ("policies", pages.policies(shown, query)),
        ("policies", pages.policies(shown, {"q": SCRIPT})),
        ("violations", pages.violation_page(shown, {})),
        ("violations", pages.violation_page(shown, dict.fromkeys(query, SCRIPT))),
        ("rollouts", pages.rollouts(shown, {})),
        ("exceptions", pages.exceptions(shown, {})),
        ("health", pages.health(shown, {})),
        ("error", {"status": 404, "error": SCRIPT, "signIn": True}),
        ("signed_out", {"provider": "/" + SCRIPT}),
        (
            "decisions",
            {
                "on": True,
                "query": dict.fromkeys(("q", "uid", "minute", *decisions.FILTERS), SCRIPT),
                "choices": {name: [{"value": SCRIPT, "found": 1}] for name in decisions.FILTERS},
                "position": {"page": 1, "pages": 2, "first": 1, "last": 1, "total": 2},
                "records": [DECISION],
                "matching": 1,
                "total": 2,
                "complete": False,
                "unreadable": 1,
                "denialsPerMinute": [0, 1, 2],
                "newestMinute": 9,
            },
        ),
    ]
    found += [
        ("violations", pages.violation_page(shown, {"group": group}))
        for group in ("policy", "namespace", "resource")
    ]
    for text in HOSTILE:
        found.append(("policy", pages.policy(shown, {"kind": text, "name": text})))
        template_query = {"kind": "ConstraintTemplate", "name": text}
        found.append(("policy", pages.policy(shown, template_query)))
        named = {"apiVersion": "v1", "kind": "Pod", "namespace": text, "name": text}
        resource = pages.resource(shown, named)
        found.append(("resource", {**resource, "live": {"error": text}}))
        found.append(("resource", {**resource, "live": live(text)}))
    replayed = {
        **dict.fromkeys(("replayed", "violating", "changed", "undecided", "withoutObject"), 1),
        "constraints": 1,
        "complete": False,
        "problems": [],
        "rows": [
            {
                **dict.fromkeys(("time", "uid", "operation", "kind", "namespace", "name"), SCRIPT),
                **dict.fromkeys(("before", "after"), SCRIPT),
                "violations": [{"kind": SCRIPT, "name": SCRIPT, "message": SCRIPT}],
            }
        ],
    }
    reviews = {
        "reviews": [
            {
                "object": SCRIPT,
                "error": SCRIPT,
                "allowed": None,
                "violations": [
                    {"kind": SCRIPT, "name": SCRIPT, "action": SCRIPT, "message": SCRIPT}
                ],
                "notDecided": [SCRIPT],
            }
        ],
        "notReviewed": 1,
        "constraints": 1,
        "problems": [{"severity": SCRIPT, "kind": SCRIPT, "name": SCRIPT, "message": SCRIPT}],
        "samples": True,
    }
    for outcome in (
        reviews,
        replayed,
        {"error": SCRIPT},
        {"answers": [{"expressions": {SCRIPT: SCRIPT}, "bindings": {}}]},
        {"value": SCRIPT},
    ):
        form = {"mode": "policy", "policy": SCRIPT, "input": SCRIPT, "query": SCRIPT}
        found.append(("playground", {**form, "modes": [], "outcome": outcome}))
    return found


@pytest.mark.parametrize(("name", "document"), hostile_documents())
def test_no_text_of_a_policy_or_an_object_becomes_markup(name: str, document: dict[str, Any]):
    found = draw(name, hostile_picture(), document)
    scripts = [attributes for tag, attributes in found.tags if tag == "script"]
    assert scripts == [{"src": "/static/console.js", "defer": None}]
    assert not [tag for tag, _ in found.tags if tag in {"img", "iframe", "object", "b", "base"}]
    for _, attributes in found.tags:
        assert not [one for one in attributes if one.startswith("on") or one == "style"]
        href = attributes.get("href")
        assert href is None or href.startswith(("/", "#"))
        assert href is None or not href.startswith("//")
    assert "\u202e" not in found.text


def test_a_name_of_253_characters_and_one_written_from_right_to_left_are_shown_whole_and_isolated():
    shown = hostile_picture()
    found = draw("violations", shown, pages.violation_page(shown, {}))
    for text in HOSTILE:
        assert visible(text) in found.text
    isolated = [tag for tag, _ in found.tags if tag == "bdi"]
    assert len(isolated) >= 2 * len(HOSTILE)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_link_to_a_policy_leads_to_it_whatever_its_name(text: str):
    from urllib.parse import parse_qs, urlsplit

    shown = hostile_picture()
    found = draw("policies", shown, pages.policies(shown, {}))
    queries = [
        parse_qs(urlsplit(attributes["href"] or "").query)
        for tag, attributes in found.tags
        if tag == "a" and (attributes.get("href") or "").startswith("/policy?")
    ]
    assert {"kind": [text], "name": [text]} in queries


@pytest.mark.parametrize("over", ["files", "cluster"])
@pytest.mark.parametrize("known", [True, False])
def test_each_page_is_drawn_where_there_is_nothing(over: str, known: bool):
    shown = picture((), () if known else None, over=over, why_no_violations="nobody looked")
    for name, view in (
        ("policies", pages.policies),
        ("violations", pages.violation_page),
        ("rollouts", pages.rollouts),
        ("health", pages.health),
    ):
        assert "<h1>" in DRAWING.page(name, "", around(shown), view(shown, {}))
    resource = {**pages.resource(shown, {}), "live": {"error": "no object is named"}}
    assert "<h1>" in DRAWING.page("resource", "", around(shown), resource)
    document = {
        **pages.overview(shown, {}),
        "decisionLog": False,
        "denialsPerMinute": [],
        "newestMinute": 0,
    }
    assert "There is no policy yet" in draw("overview", shown, document).text
    document = {
        **pages.overview(EMPTY, {}),
        "decisionLog": False,
        "denialsPerMinute": [],
        "newestMinute": 0,
    }
    assert (
        "nothing has been read yet: try again in a moment" in draw("overview", EMPTY, document).text
    )


def test_every_page_names_the_version_that_it_shows():
    shown = picture(version="98765")
    for name, view in (("policies", pages.policies), ("violations", pages.violation_page)):
        assert "98765" in draw(name, shown, view(shown, {})).text


def test_the_line_that_is_wrong_is_marked_with_what_is_wrong():
    text = "template:3: rego_unsafe_var_error: var y is unsafe"
    broken = template(
        "broken", rego="package broken\nviolation {\n  y\n}\n", state="error", faults=(text,)
    )
    shown = picture((broken,))
    document = pages.policy(shown, {"kind": "ConstraintTemplate", "name": "broken"})
    lines = document["sources"][0]["lines"]
    assert [line["error"] for line in lines] == [
        "",
        "",
        "rego_unsafe_var_error: var y is unsafe",
        "",
    ]
    found = draw("policy", shown, document)
    marked = [attributes for tag, attributes in found.tags if attributes.get("class") == "wrong"]
    assert [one["value"] for one in marked] == ["3"]


def test_a_policy_leads_to_its_template_and_a_template_to_its_constraints():
    shown = picture((template("requiredlabel"), constraint("owner")))
    of_constraint = pages.policy(shown, {"kind": "RequiredLabel", "name": "owner"})
    assert of_constraint["template"]["name"] == "requiredlabel"
    assert of_constraint["parameters"] == "label: owner"
    of_template = pages.policy(shown, {"kind": "ConstraintTemplate", "name": "requiredlabel"})
    assert [one["name"] for one in of_template["constraints"]] == ["owner"]


def test_a_policy_that_is_not_there_is_reported():
    with pytest.raises(pages.NotThere, match="RequiredLabel gone"):
        pages.policy(picture(), {"kind": "RequiredLabel", "name": "gone"})


def test_policies_are_searched_and_the_gravest_come_first():
    shown = picture(
        (constraint("a"), constraint("b", state="degraded"), constraint("c", state="error"))
    )
    listed = pages.policies(shown, {})["policies"]
    assert [item["name"] for item in listed] == ["c", "b", "a"]
    found = pages.policies(shown, {"q": "LABEL/A"})["policies"]
    assert [item["name"] for item in found] == ["a"]
    assert pages.policies(shown, {"state": "error"})["position"]["total"] == 1


def test_rows_beyond_a_page_are_on_the_next_one():
    shown = picture((), tuple(violation(f"n{index:03}") for index in range(250)))
    first = pages.violation_page(shown, {})
    assert (len(first["rows"]), first["position"]["pages"]) == (100, 3)
    last = pages.violation_page(shown, {"page": "3"})
    assert last["rows"][0]["name"] == "n200"
    assert (last["position"]["first"], last["position"]["last"]) == (201, 250)
    for number in ("0", "99", "-1", "x", "9" * 30):
        assert pages.violation_page(shown, {"page": number})["rows"]


def test_what_was_counted_of_a_picture_is_never_shown_of_the_next_one():
    first = picture(violations=(violation("one"), violation("two")))
    second = picture(violations=(violation("three"),))
    query = {"group": "resource"}
    for _ in range(2):
        assert pages.violation_page(first, query)["violations"] == 2
        assert pages.violation_page(second, query)["violations"] == 1
        assert pages.violation_page(first, {**query, "q": "two"})["violations"] == 1
    assert first == picture(violations=first.violations)


def test_exceptions_have_a_page_and_stand_on_each_policy_s():
    first = exception("e", "RequiredLabel/owner", namespace="shop", reason="moving", owner="ops")
    every = exception("all", "RequiredLabel/*", match={"name": "x"}, expires=None, permanent=True)
    every["status"] = {"state": "Unused", "message": "idle", "lastUsed": "2026-01-01T00:00:00Z"}
    broken = exception("b", "Other/one", match={"name": "x"})
    broken["status"] = {"state": "Invalid", "message": "there is no constraint Other/one"}
    owner = {**constraint("owner").document, "metadata": {"name": "owner", "uid": "u"}}
    found = picture_of(ClusterObjects([owner, first, every, broken]))
    assert {item.name: item.state for item in found.policies if item.category == "exception"} == {
        "shop/e": "pending",
        "all": "active",
        "b": "error",
    }
    shown = draw("exceptions", found, pages.exceptions(found, {}))
    for text in ("shop/e", "moving", "ops", "RequiredLabel/*", "for ever", "Unused", "Invalid"):
        assert text in shown.text
    of_owner = pages.policy(found, {"kind": "RequiredLabel", "name": "owner"})
    assert {one["name"] for one in of_owner["exceptions"]} == {"shop/e", "all"}
    assert "What is excused, and until when" in draw("policy", found, of_owner).text
    assert "Nothing is excused" in draw("exceptions", EMPTY, pages.exceptions(EMPTY, {})).text


def test_a_policy_s_page_tells_what_it_reads() -> None:
    rego = 'package x\nviolation[{"msg": "m"}] { input.review.object.spec.hostPID }'
    read = template("pids", rego=rego)
    document = pages.policy(picture((read,)), {"kind": read.kind, "name": read.name})
    assert document["reads"] == ["review.object.spec.hostPID"]
    drawn = draw("policy", picture((read,)), document)
    assert "review.object.spec.hostPID" in drawn.text
    broken = template("pids", rego=rego, faults=("wrong",))
    document = pages.policy(picture((broken,)), {"kind": read.kind, "name": read.name})
    assert document["reads"] == []
