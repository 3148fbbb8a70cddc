"""The part of a picture that a user may see."""

from dataclasses import replace

from tests.webhook.console.pictures import picture, violation
from webhook.console import pages, visibility
from webhook.console.picture import Picture, ReplicaPod
from webhook.console.visitor import Right, Visitor
from webhook.controllers.status.synced_kinds import SyncFacts

REPORTS = Right("wgpolicyk8s.io", "policyreports")


def of_namespaces(count: int) -> Picture:
    """Violations told by a report of each of so many namespaces."""
    found = tuple(
        violation(f"v{number}", carrier=replace(REPORTS, namespace=f"n{number:05}"))
        for number in range(count)
    )
    return replace(picture(), violations=found, carriers=(REPORTS,), policies=())


def test_a_page_that_does_not_ask_about_all_namespaces_says_how_many_more_there_are():
    whole = of_namespaces(visibility.NARROW_MAX + 7)
    narrowed, unchecked = visibility.narrow(whole, frozenset())
    assert (len(narrowed), unchecked) == (visibility.NARROW_MAX, 7)
    seen = visibility.seen(whole, frozenset(narrowed), unchecked)
    assert seen.violations is not None
    assert len(seen.violations) == visibility.NARROW_MAX
    (trouble,) = pages.shown(seen, Visitor("ada"))["trouble"]
    assert trouble.startswith(
        "What you may read in 7 more namespaces and kinds of constraints is not"
    )


def test_a_page_that_asks_about_all_of_them_says_nothing():
    whole = of_namespaces(visibility.NARROW_MAX)
    narrowed, unchecked = visibility.narrow(whole, frozenset())
    assert (len(narrowed), unchecked) == (visibility.NARROW_MAX, 0)
    assert visibility.seen(whole, frozenset(narrowed), unchecked).trouble == ()


def test_who_may_read_reports_everywhere_is_asked_about_no_namespace():
    whole = of_namespaces(visibility.NARROW_MAX + 7)
    granted = frozenset({REPORTS})
    assert visibility.narrow(whole, granted) == ([], 0)
    assert visibility.seen(whole, granted).violations == whole.violations


def test_what_is_kept_of_synced_objects_is_seen_by_who_may_list_templates_configs_and_sync_sets():
    whole = replace(picture(), namespace="waddle", sync=SyncFacts((), "", {}))
    templates = Right("templates.gatekeeper.sh", "constrainttemplates")
    configs = Right("config.gatekeeper.sh", "configs", "waddle")
    sync_sets = Right("syncset.gatekeeper.sh", "syncsets")
    every = frozenset({templates, configs, sync_sets})
    assert visibility.seen(whole, every).sync is whole.sync
    for one in every:
        assert visibility.seen(whole, every - {one}).sync is None


def test_reports_of_replicas_are_seen_by_who_may_read_them():
    """They name policies and providers, and who may list Pods may not read their ports."""
    noted = ReplicaPod("a", ready=True, terminating=False, notes=("a provider does not answer",))
    whole = replace(picture(), namespace="waddle", pods=(noted,))
    listing = frozenset({Right("", "pods", "waddle")})
    assert visibility.seen(whole, listing).pods == (replace(noted, notes=()),)
    reading = Right("", "pods/proxy", "waddle", "get")
    assert visibility.seen(whole, listing | {reading}).pods == (noted,)
