"""Sources of templates with what is wrong in them."""

from tests.webhook.console.pictures import template
from webhook.console.source_text import numbered, sources
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.targets.admission import AdmissionTarget


def marked(document) -> dict[str, list[int]]:
    """The lines that are marked with what the engine says of a template."""
    client = Client(targets=[AdmissionTarget()], drivers=[CelDriver(), RegoDriver()])
    try:
        client.add_template(document)
        texts = []
    except InvalidTemplate as error:
        texts = [str(error)]
    found = sources(document, texts)
    return {
        one["name"]: [line["number"] for line in one["lines"] if line["error"]] for one in found
    }


def test_the_engines_own_words_lead_to_the_line():
    good = 'package x\nviolation[{"msg": m}] {\n  m := "a"\n}\n'
    unsafe = good.replace('"a"', "y")
    assert marked(template("x", rego=good).document) == {"template": []}
    assert marked(template("x", rego=unsafe).document) == {"template": [3]}
    assert marked(template("x", rego=good + "p {").document) == {"template": [5]}
    document = template("x", rego=good.replace('"a"', "data.lib.a.x(1)")).document
    document["spec"]["targets"][0]["libs"] = ["package lib.a\n\nx(_) = z {\n  z := w\n}\n"]
    assert marked(document) == {"template": [], "libs[0]": [4]}


def test_what_is_no_template_has_no_source():
    assert sources({"kind": "ConstraintTemplate"}, ()) == []
    assert sources({}, ()) == []


def test_a_long_source_is_cut_and_says_so():
    found = numbered("x\n" * 6000, {})
    assert (len(found["lines"]), found["more"]) == (5000, 1000)
