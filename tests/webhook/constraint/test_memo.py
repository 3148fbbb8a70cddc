"""Results of evaluations that are kept: what is the same, what is never kept, and what it costs."""

import copy
import json
import time
from dataclasses import replace

import pytest

from tests import policies
from tests.differential import memo as differential
from webhook.api.admission import decode_review
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.memo import WINDOW, Memo, MemoPace
from webhook.constraint.memo_circles import RESTS_MIN, Circle
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply import projection as sync_projection
from webhook.external_data.exchange import no_answers
from webhook.reads.projection import projection, widened
from webhook.reads.read_set import ReadRecorder
from webhook.reads.text_tests import TEXT_MAX, outcomes_of

IMAGES = """package p
violation[{"msg": msg}] {
  c := input.review.object.spec.containers[_]
  startswith(lower(c.image), "bad")
  msg := sprintf("%v of %v", [c.image, input.review.object.metadata.name])
}"""

LABELS = """package p
violation[{"msg": msg}] {
  not input.review.object.metadata.labels.team
  msg := "no team"
}"""


def pod(name="a", image="good", labels=None, **spec):
    metadata = {"name": name, "namespace": "d", "labels": labels or {"team": "t"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }


def request(obj, *, old=None, operation="CREATE", username="u"):
    document = {
        "uid": str(time.monotonic_ns()),
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": operation,
        "object": obj,
        "oldObject": old,
        "name": "a",
        "namespace": "d",
        "userInfo": {"username": username},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": document}
    return AugmentedReview(decode_review(json.dumps(review).encode()))


class Reviewed:
    """Policies with a memo that derives at once."""

    def __init__(self, *sources, bytes_max=1 << 20, window=WINDOW):
        self.client = Client(targets=[AdmissionTarget()], drivers=[CelDriver(), RegoDriver()])
        pace = MemoPace(1, window)
        self.memo = Memo(bytes_max, lambda job: job(), key=b"secret", pace=pace)
        for number, source in enumerate(sources):
            kind = f"Kind{number}"
            is_rego = isinstance(source, str)
            self.client.add_template(
                policies.template(
                    kind,
                    source if is_rego else "",
                    cel=None if is_rego else source,
                    schema=policies.FREE,
                )
            )
            self.client.add_constraint(policies.constraint(kind, "one"))
        self(request(pod("before", "image of its own")))

    def __call__(self, value, **limits):
        return self.client.snapshot.review(
            value, enforcement_point=WEBHOOK, limits=Limits(memo=self.memo, **limits)
        )


def messages(responses):
    return [one.msg for one in responses.results]


def test_a_review_that_differs_in_nothing_that_decides_is_not_evaluated() -> None:
    review = Reviewed(IMAGES, LABELS)
    assert review(request(pod("a"))).recalled == 0
    again = review(request(pod("b", nodeName="n"), username="other"))
    assert (again.recalled, again.evaluated, again.results) == (2, 2, ())
    assert review.memo.counts.hits == 2


def test_one_that_differs_in_a_label_is_evaluated_by_who_reads_labels_alone() -> None:
    every = """package p
violation[{"msg": "x"}] { input.review.object.metadata.labels[_] == "bad" }"""
    review = Reviewed(IMAGES, LABELS, every)
    review(request(pod("a")))
    assert review(request(pod("b", labels={"team": "t", "hash": "x"}))).recalled == 2


def test_that_no_policy_finds_anything_is_looked_up_at_once(monkeypatch) -> None:
    digest, digests = Circle.digest, []

    def counted(self, *arguments):
        digests.append(self)
        return digest(self, *arguments)

    review = Reviewed(IMAGES, LABELS)
    review(request(pod("a")))
    monkeypatch.setattr(Circle, "digest", counted)
    again = review(request(pod("b")))
    assert (again.recalled, len(digests)) == (2, 1)
    assert review(request(pod("c", image="other"))).recalled == 1
    assert review(request(pod("d", image="other"))).recalled == 2
    assert len(digests) == 5  # the third was looked up for each, too
    for name in ("e", "f"):
        assert messages(review(request(pod(name, labels={"x": "y"})))) == ["no team"]


def test_a_new_image_is_evaluated_by_who_reads_images_alone() -> None:
    limits = """package p
violation[{"msg": "high"}] { input.review.object.spec.containers[_].resources.limits.cpu > 4 }"""
    every = """package p
violation[{"msg": "x"}] { lower(input.review.object.spec[_][_].image) == "bad" }"""
    review = Reviewed(IMAGES, LABELS, limits, every)
    review(request(pod("a")))
    assert review(request(pod("b", image="other"))).recalled == 2
    assert review(request(pod("c", image="other"))).recalled == 4


REPOS = """package p
violation[{"msg": msg}] {
  c := input.review.object.spec.containers[_]
  not strings.any_prefix_match(c.image, ["good/"])
  msg := sprintf("%v", [c.image])
}
violation[{"msg": msg}] {
  c := input.review.object.spec.containers[_]
  parts := split(c.image, "/")
  not contains(parts[count(parts) - 1], ":")
  msg := sprintf("%v without a tag", [c.image])
}"""


def test_a_new_tag_is_not_evaluated_by_who_asks_for_the_registry() -> None:
    review = Reviewed(REPOS)
    assert review(request(pod("a", "good/app:1"))).recalled == 0
    assert review(request(pod("b", "good/app:2"))).recalled == 1
    assert messages(review(request(pod("c", "good/app")))) == ["good/app without a tag"]
    assert messages(review(request(pod("d", "bad/app:1")))) == ["bad/app:1"]
    assert messages(review(request(pod("e", "bad/app:2")))) == ["bad/app:2"]


def test_an_image_of_another_kind_or_of_any_length_is_none_that_was_tested() -> None:
    review = Reviewed(REPOS)
    long = "good/" + "a" * TEXT_MAX
    for image in ("good/app:1", ["good/app:1"], ["bad/app:1"], 1, None, f"{long}:1", long):
        before = review(request(pod("a", image)))
        assert before.recalled == 0
        assert messages(review(request(pod("b", image)))) == messages(before)


@pytest.mark.parametrize(
    ("expression", "empty", "other"),
    [
        ("namespaceObject != null", None, {"metadata": {"name": "d"}}),
        (
            "has(namespaceObject.metadata.labels)",
            {"metadata": {"name": "d", "labels": {}}},
            {"metadata": {"name": "d", "labels": {"a": "b"}}},
        ),
    ],
)
def test_an_empty_namespace_is_another_than_one_with_content(expression, empty, other) -> None:
    review = Reviewed({"validations": [{"expression": expression, "message": "no"}]})
    for namespace in (empty, other, empty):
        value = request(pod("a"))._replace(namespace=namespace)
        assert messages(review(value)) == ([] if namespace is other else ["no"])


def test_a_violation_of_which_the_message_tells_more_is_reported_anew() -> None:
    review = Reviewed(IMAGES, LABELS)
    assert messages(review(request(pod("a", "bad")))) == ["bad of a"]
    again = review(request(pod("b", "bad")))
    assert messages(again) == ["bad of b"]
    assert again.recalled == 1


def test_a_violation_is_kept_where_it_tells_nothing_but_what_decides_it() -> None:
    review = Reviewed(LABELS)
    review(request(pod("a", labels={"x": "y"})))
    again = review(request(pod("b", labels={"x": "y"})))
    assert messages(again) == ["no team"]
    assert again.recalled == 1


def test_an_update_of_what_no_policy_reads_is_not_evaluated() -> None:
    review = Reviewed(IMAGES, LABELS)
    before = pod("a")
    review(request(before))
    after = copy.deepcopy(before) | {"status": {"phase": "Running"}}
    after["metadata"]["annotations"] = {"note": "new"}
    assert review(request(after, old=before, operation="UPDATE")).recalled == 2


def test_who_reads_the_old_object_is_asked_again_where_that_differs() -> None:
    source = """package p
violation[{"msg": "changed"}] {
  input.review.operation == "UPDATE"
  input.review.object.spec.nodeName != input.review.oldObject.spec.nodeName
}"""
    review = Reviewed(source)
    same = pod("a", nodeName="n")
    assert messages(review(request(same, old=same, operation="UPDATE"))) == []
    other = pod("a", nodeName="m")
    assert messages(review(request(same, old=other, operation="UPDATE"))) == ["changed"]
    assert review(request(same, old=same, operation="UPDATE")).recalled == 1


@pytest.mark.parametrize(
    "source",
    [
        'package p\nviolation[{"msg": "x"}] { time.now_ns() < 0 }',
        'package p\nviolation[{"msg": "x"}] { rand.intn("x", 9) > 99 }',
        'package p\nviolation[{"msg": "x"}] { uuid.rfc4122("x") == "y" }',
        'package p\nviolation[{"msg": "x"}] { trace("seen"); false }',
        'package p\nviolation[{"msg": "x"}] { print("seen"); input.x }',
        'package p\nviolation[{"msg": "x"}] { data.inventory.cluster.v1.Pod[_].x }',
        """package p
violation[{"msg": "x"}] { external_data({"provider": "p", "keys": ["k"]}).errors[_] }""",
        'package p\nviolation[{"msg": "x"}] { json.marshal(input) == "y" }',
        {
            "variables": [{"name": "i", "expression": "variables.inventory"}],
            "validations": [{"expression": "!has(variables.i.x)", "message": "x"}],
        },
    ],
)
def test_what_may_answer_otherwise_is_never_kept(source) -> None:
    review = Reviewed(source)
    known = no_answers().known
    for _ in range(5):
        assert review(request(pod("a")), known=known).recalled == 0
    assert review.memo.counts == (0, 0, 0, 0)


def test_an_evaluation_that_fails_or_overruns_is_never_kept() -> None:
    source = """package p
violation[{"msg": "x"}] {
  count([1 | numbers.range(1, 100000)[_] > 0; input.review.object.spec.slow]) > 1
}
violation[{"msg": 1}] { input.review.object.spec.wrong }"""
    review = Reviewed(source)
    for _ in range(3):
        overrun = review(request(pod("a", slow=True)), budget=Budget.of(0.0001))
        assert overrun.undecided[0].cause == "overrun"
        failed = review(request(pod("a", wrong=True)))
        assert (failed.recalled, failed.undecided, failed.faults) != (1, [], ())
    assert review(request(pod("a", slow=True))).recalled == 0
    assert review.memo.counts.bytes < 1_000


def test_a_failure_beside_what_is_known_is_a_violation_of_all_constraints_of_the_template() -> None:
    source = """package p
violation[{"msg": "x"}] { input.parameters.fails; x := 1 / input.review.object.spec.number; x > 0
  input.review.object.spec.name == [y | y := "a"][_] }
f(x) = 1 { x == input.review.object.spec.number }
f(x) = 2 { x > 0 }
violation[{"msg": "y"}] { input.parameters.fails; f(input.review.object.spec.number) == 3 }"""
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(policies.template("Kind0", source, schema=policies.FREE))
    for name, fails in (("one", False), ("two", True)):
        client.add_constraint(policies.constraint("Kind0", name, parameters={"fails": fails}))
    memo = Memo(1 << 20, lambda job: job(), key=b"secret", pace=MemoPace(1))
    for number in (0, 1, 0, 1):
        value = request(pod("a", number=number))
        without = client.snapshot.review(value, enforcement_point=WEBHOOK)
        limits = Limits(memo=memo)
        kept = client.snapshot.review(value, enforcement_point=WEBHOOK, limits=limits)
        assert differential.seen(kept) == differential.seen(without)
        assert (number == 0) == (not without.results)


BY_NAME = """package p
violation[{"msg": msg}] {
  startswith(containers[name].image, "bad")
  msg := name
}
containers[c.name] = c { c := input.review.object.spec.containers[_] }"""


def of_containers(*containers):
    return request(pod() | {"spec": {"containers": list(containers)}})


def test_containers_that_are_kept_by_name_may_differ_in_what_else_they_hold() -> None:
    review = Reviewed(BY_NAME)
    for name in "ab":
        mounts = [{"name": f"token-{name}"}]
        found = review(of_containers({"name": "c", "image": "good", "volumeMounts": mounts}))
    assert (found.recalled, found.results) == (1, ())


def test_of_two_containers_of_one_name_nothing_is_kept() -> None:
    review = Reviewed(BY_NAME)
    same = {"name": "c", "image": "good", "tty": True}
    for _ in range(2):
        found = review(of_containers(same, same))
        assert (found.recalled, found.results) == (0, ())
    found = review(of_containers(same, {**same, "tty": False}))
    assert "object keys must be unique" in messages(found)[0]


def test_numbers_that_policies_tell_apart_have_digests_of_their_own() -> None:
    recorder = ReadRecorder()
    recorder.whole(("a",))
    review = Reviewed(LABELS.replace("labels.team", "labels"))
    take = projection(recorder.frozen())
    values = [1, 1.0, True, "1", None, [], {}, [1], [2], [3, 1], False, "", 0, -0.0]
    assert len({json.dumps(take({"a": one})) for one in values} | {json.dumps(take({}))}) == 15
    source = 'package p\nviolation[{"msg": m}] { m := sprintf("%v", [input.review.object.spec.n]) }'
    review = Reviewed(source)
    for number in (1, 1.0, True, "1", 1):
        first = messages(review(request(pod("a", n=number))))
        assert messages(review(request(pod("b", n=number)))) == first
    assert messages(review(request(pod("a", n=1.0)))) != messages(review(request(pod("a", n=True))))


def test_the_order_of_keys_makes_no_difference() -> None:
    source = 'package p\nviolation[{"msg": "x"}] { input.review.object.spec.a == {"b": 2} }'
    review = Reviewed(source)
    review(request(pod("a", a={"x": 1, "y": {"z": 1, "w": 2}})))
    assert review(request(pod("a", a={"y": {"w": 2, "z": 1}, "x": 1}))).recalled == 1


def test_integers_that_no_digest_holds_are_evaluated() -> None:
    source = 'package p\nviolation[{"msg": "x"}] { input.review.object.spec.n > 1 }'
    review = Reviewed(source)
    for _ in range(3):
        large = review(request(pod("a", n=1 << 80)))
        assert (messages(large), large.recalled) == (["x"], 0)


def test_a_policy_that_reads_too_many_parts_is_evaluated_and_others_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("webhook.reads.projection.FUNCTIONS_MAX", 40)
    wide = "package p\n" + "\n".join(
        f'violation[{{"msg": "x"}}] {{ input.review.object.spec.a{n}.b{n} == 1 }}'
        for n in range(50)
    )
    for sources in ((IMAGES, wide), (wide, IMAGES)):
        review = Reviewed(*sources)
        review(request(pod("a")))
        again = review(request(pod("b")))
        assert (again.recalled, again.evaluated, again.results) == (1, 2, ())


def test_other_policies_begin_with_nothing() -> None:
    review = Reviewed(IMAGES)
    review(request(pod("a")))
    assert review(request(pod("a"))).recalled == 1
    source = IMAGES.replace('"bad"', '"good"')
    review.client.add_template(policies.template("Kind0", source, schema=policies.FREE))
    review.client.add_constraint(policies.constraint("Kind0", "one"))
    assert messages(review(request(pod("a")))) == ["good of a"]


def test_data_that_is_synced_drops_nothing() -> None:
    review = Reviewed(IMAGES)
    review(request(pod("a")))
    review.client.add_data(pod("synced"))
    assert review(request(pod("a"))).recalled == 1


def test_what_is_kept_is_bounded_and_what_comes_back_stays() -> None:
    review = Reviewed(IMAGES, bytes_max=4_000, window=1_000)
    often = request(pod("a", "often"))
    for number in range(200):
        review(request(pod("a", f"image-{number}")))
        assert number < 2 or review(often).recalled == 1
        review(often)
        assert review.memo.counts.bytes <= 4_000


def test_what_does_not_pay_rests_and_is_tried_again() -> None:
    review = Reviewed(IMAGES)
    for number in range(WINDOW):
        assert review.memo.counts.resting == 0
        review(request(pod("a", f"image-{number}")))
    assert review.memo.counts.resting == 1
    misses = review.memo.counts.misses
    for _ in range(RESTS_MIN):
        assert review(request(pod("a"))).recalled == 0
    assert review.memo.counts.misses == misses
    review(request(pod("a")))
    assert review(request(pod("a"))).recalled == 1


def test_evaluations_are_shown_to_who_traces_them() -> None:
    class Observer:
        seen = 0

        def evaluated(self, *_):
            self.seen += 1

    review, observer = Reviewed(IMAGES), Observer()
    for count in (1, 2, 3):
        assert review(request(pod("a")), observer=observer).recalled == 0
        assert observer.seen == count


def test_what_is_kept_holds_no_part_of_an_object() -> None:
    source = """package p
violation[{"msg": "x", "details": {"labels": labels}}] {
  labels := input.review.object.metadata.labels
  count(labels) < 5; labels != {"c": "d"}
}"""
    review = Reviewed(source)
    labels = {"a": "b"}
    first = review(request(pod("a", labels=labels)))
    again = review(request(pod("a", labels=labels)))
    assert again.recalled == 1
    assert again.results[0].details == first.results[0].details
    assert again.results[0].details["labels"] is not first.results[0].details["labels"]


def test_more_is_taken_of_what_lies_deep_and_never_less() -> None:
    recorder = ReadRecorder()
    recorder.shallow(("a", "b", "c", "d"))
    recorder.present(("a", "labels", "x"))
    wide = projection(widened(recorder.frozen(), 2, {"labels"}))
    value = {"a": {"b": {"c": {"d": 1, "e": 2}}, "labels": {"x": 1, "y": 2}}}
    other = {"a": {"b": {"c": {"d": 1, "e": 3}}, "labels": {"x": 1, "y": 2}}}
    more = {"a": {"b": {"c": {"d": 1, "e": 2}}, "labels": {"x": 2, "y": 3}}}
    assert wide(value) != wide(other)
    assert wide(value) == wide(more)


@pytest.mark.parametrize("first", [1000, 1020, 1060, 1080])
def test_reviews_with_and_without_a_memo_and_projected_data_answer_the_same(first: int) -> None:
    compared = differential.compare(range(first, first + 10), reviews=250)
    assert compared.differences == []
    assert compared.violating > compared.reviews / 4
    assert compared.recalled > compared.reviews
    assert compared.waiting
    assert compared.excused
    assert compared.by_group


def _lacking(reads, *path):
    """A read set without what is read at a path."""
    name, *below = path
    if reads.whole or name not in reads.children:
        return reads
    children = dict(reads.children)
    if below:
        children[name] = _lacking(children[name], *below)
    else:
        del children[name]
    return replace(reads, children=children)


def _nowhere(reads, name):
    """A read set without what is read at a name, wherever it is."""
    children = {key: _nowhere(one, name) for key, one in reads.children.items() if key != name}
    return reads if reads.whole else replace(reads, children=children)


def _plant_digest(monkeypatch):
    def lacking(reads):
        return projection(reads if len(reads.children) < 2 else type(reads)(scalar=False))

    monkeypatch.setattr("webhook.constraint.memo_circles.projection", lacking)


def _plant_reads(monkeypatch, change):
    derive = differential.reads.dependencies_of_evaluator

    def changed(*arguments):
        found = derive(*arguments)
        return found and change(found)

    monkeypatch.setattr(differential.reads, "dependencies_of_evaluator", changed)


def _plant_read_set(monkeypatch):
    path = "input", "review", "object", "metadata", "labels"
    _plant_reads(
        monkeypatch,
        lambda found: replace(
            found, reads=_lacking(found.reads, *path), deciding=_lacking(found.deciding, *path)
        ),
    )


def _plant_chance(monkeypatch):
    _plant_reads(monkeypatch, lambda found: replace(found, changing=()))


def _plant_equal_keys(monkeypatch):
    keep = Memo.keep

    def kept(self, recall, *, has_distinct_keys):
        del has_distinct_keys
        keep(self, recall, has_distinct_keys=True)

    monkeypatch.setattr(Memo, "keep", kept)


def _plant_data(monkeypatch):
    _plant_reads(monkeypatch, lambda found: replace(found, reads=_lacking(found.reads, "data")))


def _plant_union(monkeypatch):
    unite = Memo._unite

    def of_the_first_alone(self, plan, circles):
        unite(self, plan, circles[:1])
        plan.unions[circles] = plan.unions.pop(circles[:1])

    monkeypatch.setattr(Memo, "_unite", of_the_first_alone)


def _plant_text_tests(monkeypatch):
    def lacking(tests):
        return outcomes_of(sorted(tests, key=repr)[:-1])

    monkeypatch.setattr("webhook.reads.projection.outcomes_of", lacking)


def _plant_old_policies(monkeypatch):
    derive = Memo._member

    def member(self, entry, constraint):
        return self._members.setdefault(constraint.key, derive(self, entry, constraint))

    def adopt(self, snapshot):
        self._snapshot = snapshot
        self._selections.clear()

    monkeypatch.setattr(Memo, "_member", member)
    monkeypatch.setattr(Memo, "_adopt", adopt)


def _plant_projection(monkeypatch):
    derive = differential.reads.inventory_reads

    def lacking(template):
        found = derive(template)
        return found and _nowhere(found, "a")

    monkeypatch.setattr(differential.reads, "inventory_reads", lacking)


def _plant_haste(monkeypatch):
    monkeypatch.setattr(sync_projection.SyncProjection, "awaited", lambda *_, **__: ())


@pytest.mark.parametrize(
    ("plant", "found_by"),
    [
        (_plant_digest, 0),
        (_plant_read_set, 7),
        (_plant_chance, 7),
        (_plant_equal_keys, 84),
        (_plant_data, 84),
        (_plant_union, 21),
        (_plant_text_tests, 56),
        (_plant_old_policies, 7),
        (_plant_projection, 7),
        (_plant_haste, 0),
    ],
)
def test_a_fault_that_is_planted_is_found_by_comparing(plant, found_by, monkeypatch) -> None:
    """``found_by`` is tried first; others may find it when the comparison's worlds change."""
    plant(monkeypatch)
    numbers = sorted(range(0, 400, 7), key=lambda number: number != found_by)
    assert any(differential.compare([number]).differences for number in numbers)
