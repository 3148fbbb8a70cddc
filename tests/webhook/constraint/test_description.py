"""Descriptions of policies: the constraint's own text, then its template's."""

from tests.programs import ROOT
from webhook.constraint.description import SEVERITIES, Description, describe
from webhook.policies.manifests import read_file


def annotated(**annotations):
    return {"metadata": {"annotations": annotations}}


def test_a_constraint_s_own_word_counts_before_its_template_s():
    template = annotated(description="Of the\n template.") | {"kind": "ConstraintTemplate"}
    template["metadata"]["annotations"]["metadata.gatekeeper.sh/title"] = "Title"
    constraint = annotated(description="Its own.")

    assert describe(constraint, template) == Description("Title", "Its own.")
    assert describe({}, template) == Description("Title", "Of the template.")


def test_what_is_no_severity_and_no_text_is_nothing():
    assert describe(annotated(description=3)) == Description()
    assert (
        describe({"metadata": {"annotations": {"waddle.dev/severity": "awful"}}}) == Description()
    )
    high = {"metadata": {"annotations": {"policies.kyverno.io/severity": "High"}}}
    assert describe(high).severity == "high"


def test_every_template_of_our_library_has_a_title_a_description_and_a_severity():
    files = sorted((ROOT / "policies").glob("*/*/template.yaml"))
    assert len(files) > 40
    for file in files:
        one = describe(read_file(file)[0].document)
        assert one.title, file
        assert one.description.endswith("."), file
        assert one.severity in SEVERITIES, file
