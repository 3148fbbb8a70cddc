"""The console's pages as a person has them: in a real browser, where one is asked for."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from loadtest.console import report as load_report
from tests.behaviour.consoles import template
from tests.behaviour.serving import REQUIRED_LABELS, constraint
from tests.browser import Browser, required
from tests.patience import until
from tests.webhook.admission_policies import making as admission_policies
from tests.webhook.console.assembled import KIND, policy
from tests.webhook.console.folder import console_over, write_decisions, write_folder
from tests.webhook.console.identity import RunningProvider
from tests.webhook.console.listing import Listing
from tests.webhook.console.pictures import LONG, RIGHT_TO_LEFT, SCRIPT
from tests.webhook.console.running import RunningConsole
from tests.webhook.console.signing import signing
from webhook.cli.cluster_access import TEMPLATES
from webhook.policy_kinds.known import constraints_of
from webhook.policy_kinds.table import ADMISSION_POLICY_KINDS, KYVERNO_KINDS
from webhook.reports.report_api import WGPOLICY

PAGES = {
    "Overview": "/",
    "Policies": "/policies",
    "Violations": "/violations",
    "Decisions": "/decisions",
    "Exceptions": "/exceptions",
    "Roll-outs": "/rollouts",
    "Playground": "/playground",
    "Health": "/health",
}
"""By their headings."""

INNOCENT = """
return [...document.scripts].every(one => new URL(one.src).origin === location.origin)
  && !document.querySelector("main script, main img, main iframe, main style")
"""
"""No markup of an object's name became a part of the page."""

FITS = """
return document.documentElement.scrollWidth <= document.documentElement.clientWidth
"""
"""The page can be read without sideways scrolling."""

DESKTOP, TELEPHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def browser(program: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(*required(), tmp_path_factory.mktemp("profile")) as running:
        running.go("about:blank")
        running.resize(*DESKTOP)
        yield running


def look(browser: Browser, console: RunningConsole, path: str, heading: str) -> None:
    """Open a page, and see that it is whole, in order, and takes nothing from elsewhere."""
    browser.go(console.address + path)
    assert browser.texts("h1") == [heading]
    assert browser.texts("nav [aria-current]") in ([heading], []), "one page is the present one"
    assert browser.run(INNOCENT)
    fits(browser)
    assert browser.complaints(console.address) == []


def fits(browser: Browser) -> None:
    """See that a page is as wide as a telephone, and as a desk's screen."""
    for size in (TELEPHONE, DESKTOP):
        browser.resize(*size)
        assert browser.run(FITS), f"at {size}: {widest(browser)}"


def widest(browser: Browser) -> object:
    """The elements that go beyond the right edge."""
    return browser.run(
        "const edge = document.documentElement.clientWidth;"
        "return [...document.querySelectorAll('main *')]"
        ".filter(one => one.getBoundingClientRect().right > edge + 1)"
        ".slice(0, 5).map(one => one.outerHTML.slice(0, 200))"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wide = constraint("wide-" + "m" * 40, "wide", action="warn")
    return write_folder(tmp_path_factory.mktemp("console"), wide)


@pytest.fixture(scope="module")
def console(browser: Browser, folder: Path) -> Iterator[RunningConsole]:
    with console_over(folder) as running:
        yield running


@pytest.mark.parametrize("heading", PAGES)
def test_each_page_shows_hostile_names_as_text_and_fits_a_telephone(browser, console, heading):
    look(browser, console, PAGES[heading], heading)


def test_charts_can_be_read_on_a_telephone_and_lead_to_what_they_count(browser, console):
    browser.go(console.address)
    for size in (DESKTOP, TELEPHONE):
        browser.resize(*size)
        assert browser.run(SMALL) == [], f"at {size}"
        assert browser.run(COVERED) == [], f"at {size}"
    browser.resize(*DESKTOP)
    assert browser.run("return document.querySelectorAll('.bars rect').length") > 2
    browser.click(".bars a")
    browser.until("return document.querySelector('h1')?.innerText === 'Violations'")
    assert "namespace=" in browser.run("return location.search")


def test_a_minute_s_column_leads_to_its_denials_by_mouse_and_by_keyboard(browser, tmp_path):
    write_folder(tmp_path)
    with console_over(tmp_path, f"--decisions={write_decisions(tmp_path)}") as console:
        for path in ("/", "/decisions"):
            look(browser, console, path, "Overview" if path == "/" else "Decisions")
            browser.resize(*DESKTOP)
            assert len(browser.texts(".columns a")) == 2, "a link for each minute with denials"
            browser.run("document.querySelectorAll('.columns a')[1].focus()")
            browser.press("\ue007")
            browser.until("return location.search.includes('minute=')")
            assert len(browser.texts("tbody tr")) == 1
            assert "web-2" in browser.texts("tbody tr")[0]
        browser.go(f"{console.address}/decisions")
        browser.click(".columns a .bar")
        browser.until("return location.search.includes('minute=2026-01-01T00%3A00')")
        assert "web-0" in browser.texts("tbody tr")[0]
        assert browser.complaints(console.address) == []


def test_violations_are_sorted_as_it_is_chosen_and_the_address_keeps_it(browser, console):
    browser.go(f"{console.address}/violations")
    browser.click("select[name=sort] option[value=policy]")
    browser.click("form.search button")
    browser.until("return location.search.includes('sort=policy')")
    kept = browser.run("return location.href")
    browser.go(console.address)
    browser.go(kept)
    policies = browser.texts("tbody td:first-child")
    assert policies == sorted(policies)
    assert browser.run("return document.querySelector('[name=sort]').value") == "policy"


def test_a_violation_shows_when_it_was_seen_first_and_last(browser, tmp_path):
    found = load_report(0)
    found["results"][0]["timestamp"] = {"seconds": 1767225600, "nanos": 0}
    audited = policy("rule-0", status={"auditTimestamp": "2026-02-01T00:00:00Z"})
    with Listing(tmp_path, KIND) as listing:
        listing.put(TEMPLATES, template())
        listing.put(constraints_of(KIND), audited)
        listing.put(WGPOLICY.namespaced, found)
        with RunningConsole("--kubeconfig", str(listing.kubeconfig)) as console:
            console.ready()
            until(lambda: console.json("/violations")["violations"] == 1, "the violation")
            browser.go(f"{console.address}/violations")
            assert browser.texts("th")[-2:] == ["First seen", "Last seen"]
            times = "return [...document.querySelectorAll('td time')].map(one => one.dateTime)"
            assert browser.run(times) == ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]
            fits(browser)


def test_the_cluster_s_own_policies_stand_beside_constraints(browser, tmp_path):
    rows = {row.kind: row.resource for row in (*ADMISSION_POLICY_KINDS, *KYVERNO_KINDS)}
    with Listing(tmp_path, KIND) as listing:
        listing.put(TEMPLATES, template())
        listing.put(constraints_of(KIND), policy("rule"))
        bound = admission_policies.policy("true", name="bound")
        unbound = admission_policies.policy("true", name=SCRIPT)
        listing.put(rows["ValidatingAdmissionPolicy"], bound, unbound)
        binding = admission_policies.binding("of-it", "bound", validationActions=["Warn"])
        listing.put(rows["ValidatingAdmissionPolicyBinding"], binding)
        listing.put(rows["ValidatingPolicy"], admission_policies.kyverno("of-kyverno", "object."))
        options = ("--kubeconfig", str(listing.kubeconfig), "--kyverno-policies=enforce")
        with RunningConsole(*options) as console:
            console.ready()
            until(lambda: len(console.json("/policies")["policies"]) == 6, "all of them")
            look(browser, console, "/policies", "Policies")
            text = browser.texts("main")[0]
            for name in ("RequiredLabel/rule", "of-it", "bound", "of-kyverno", SCRIPT):
                assert name.rpartition("/")[2] in text
            browser.click("select[name=category] option[value='admission policy']")
            browser.click("form.search button")
            browser.until("return location.search.includes('category=admission')")
            assert len(browser.texts("tbody tr")) == 3
            for kind, name, state in (
                ("ValidatingAdmissionPolicy", "bound", "warn"),
                ("ValidatingAdmissionPolicy", SCRIPT, "no binding names it"),
                ("ValidatingPolicy", "of-kyverno", "validations[0].expression"),
            ):
                where = urlencode({"kind": kind, "name": name})
                browser.go(f"{console.address}/policy?{where}")
                assert name in browser.texts("h1")[0]
                assert state in browser.texts("main")[0]
                assert browser.run(INNOCENT)
                fits(browser)
            assert browser.complaints(console.address) == []


SMALL = """
const shown = one => {
  const drawing = one.closest("svg");
  const scale = drawing?.getScreenCTM ? drawing.getScreenCTM().a : 1;
  return parseFloat(getComputedStyle(one).fontSize) * scale;
};
return [...document.querySelectorAll("main *")]
  .filter(one => [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim()))
  .filter(one => one.getClientRects().length && shown(one) < 12)
  .map(one => one.outerHTML.slice(0, 120));
"""
"""Words of less than 12 pixels, as they are on the screen."""

COVERED = """
return [...document.querySelectorAll(".bars li")].filter(one => {
  const label = one.querySelector(".label").getBoundingClientRect();
  const bar = one.querySelector("svg").getBoundingClientRect();
  return label.right > bar.left && label.bottom > bar.top;
}).map(one => one.innerText);
"""
"""Labels that bars begin in."""


def test_pages_of_one_policy_and_one_resource_do_too(browser, console):
    browser.go(f"{console.address}/policy?kind=RequiredLabel&name=needs-team")
    assert browser.run(INNOCENT)
    fits(browser)
    assert SCRIPT in browser.texts("main")[0]
    for name in (LONG, RIGHT_TO_LEFT, SCRIPT):
        query = urlencode({"apiVersion": "v1", "kind": "Pod", "namespace": "", "name": name})
        browser.go(f"{console.address}/resource?{query}")
        assert name in browser.texts("main")[0]
        assert browser.run(INNOCENT)
        fits(browser)
    assert browser.complaints(console.address) == []


def test_long_words_of_messages_and_paths_are_broken_and_those_of_headings_are_not(
    browser, tmp_path
):
    field = "spec.containers[0].securityContext.allowPrivilegeEscalation"
    write_folder(tmp_path, constraint("long-" + "m" * 40, f"'{field}'", action="dryrun"))
    shown = {"apiVersion": "v1", "kind": "Pod", "namespace": "", "name": SCRIPT}
    pages = (
        f"/resource?{urlencode(shown)}",
        "/violations",
        "/policies",
        "/policy?kind=ConstraintTemplate&name=requiredlabel",
    )
    with console_over(tmp_path) as console:
        for path in pages:
            browser.go(console.address + path)
            fits(browser)
            assert browser.run(BROKEN_HEADINGS) == [], f"{path}: a word in two lines"


BROKEN_HEADINGS = """
return [...document.querySelectorAll('th')]
  .filter(one => one.clientHeight > 1.9 * parseFloat(getComputedStyle(one).lineHeight)
    && !/\\s/.test(one.innerText.trim()))
  .map(one => one.innerText)
"""


def test_a_telephone_shows_a_row_below_itself_instead_of_columns_of_letters(browser, console):
    browser.go(f"{console.address}/violations")
    browser.resize(*TELEPHONE)
    try:
        narrow = browser.run(
            "const all = document.documentElement.clientWidth;"
            "return [...document.querySelectorAll('td')].filter(one => one.innerText.trim()"
            " && one.clientWidth < all / 2).length"
        )
    finally:
        browser.resize(*DESKTOP)
    assert narrow == 0


def test_one_comes_from_the_overview_to_what_is_wrong_by_links_alone(browser, console):
    browser.go(f"{console.address}/violations?group=policy")
    browser.click("main table a")
    browser.until("return document.querySelector('h1')?.innerText.includes('needs-')")
    browser.go(f"{console.address}/violations")
    browser.press("/")
    assert browser.run("return document.activeElement.name") == "q", "/ goes to the search"
    browser.write("input[name=q]", "owner\n")
    browser.until("return location.search.includes('q=owner')")
    assert "4 violations" in browser.texts("main")[0]


def test_filters_are_choices_with_counts_and_the_address_keeps_them(browser, console):
    browser.go(f"{console.address}/violations")
    assert browser.texts("tbody tr")[0].find("deny") >= 0, "the gravest first"
    choices = browser.texts("select[name=policy] option")
    assert "RequiredLabel/needs-owner (4)" in choices
    browser.click("select[name=policy] option[value='RequiredLabel/needs-owner']")
    browser.click("form.search button")
    browser.until("return location.search.includes('policy=RequiredLabel')")
    assert "4 violations" in browser.texts("main")[0]
    kept = browser.run("return location.href")
    browser.go(console.address)
    browser.go(kept)
    chosen = "return document.querySelector('select[name=policy]').value"
    assert browser.run(chosen) == "RequiredLabel/needs-owner"
    assert "4 violations" in browser.texts("main")[0]
    fits(browser)


def test_the_playground_says_what_policies_in_force_make_of_an_object(browser, console):
    browser.go(f"{console.address}/playground")
    browser.write("textarea[name=input]", "{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    browser.click("form.playground button")
    browser.until("return document.querySelector('#outcome') !== null")
    assert "label <owner> is missing" in browser.texts("#outcome")[0]
    assert browser.complaints(console.address) == []


NEW = f"{REQUIRED_LABELS}\n---\n{constraint('typed', 'team')}"
BARE = "{apiVersion: v1, kind: Pod, metadata: {name: a}}"


@pytest.mark.parametrize(
    ("mode", "policy", "given", "outcome"),
    [
        ("review", NEW, BARE, "Choose to try new templates and constraints"),
        ("review", "", "{kind: Pod}", "an object with apiVersion and kind is expected"),
        ("policy", NEW, BARE, "label <team> is missing"),
        ("policy", NEW, "", "Tried on samples"),
        ("policy", "{[", "", "did not find expected node"),
        ("rego", "package p\nx := 7", "", "7"),
        ("cel", "object.kind + '!'", BARE, "Pod!"),
        ("cel", "1 +", "", "Syntax error"),
    ],
)
def test_each_choice_of_the_playground_has_an_outcome_that_can_be_read(
    browser, console, mode, policy, given, outcome
):
    browser.go(f"{console.address}/playground")
    browser.click(f"input[name=mode][value={mode}]")
    for name, text in (("policy", policy), ("input", given)):
        # Typed letter by letter a template takes seconds.
        browser.run(
            "document.querySelector(arguments[0]).value = arguments[1]", f"[name={name}]", text
        )
    browser.write("input[name=query]", "data.p.x")
    browser.click("form.playground button")
    browser.until("return document.querySelector('#outcome') !== null")
    assert outcome in browser.texts("#outcome")[0]
    assert browser.run("return document.querySelector('[name=mode]:checked').value") == mode
    assert browser.run("return document.querySelector('[name=policy]').value") == policy
    fits(browser)
    assert browser.complaints(console.address) == []


def test_a_page_that_is_open_shows_a_new_policy_by_itself(browser, console, folder):
    browser.go(f"{console.address}/policies")
    assert "needs-cost" not in browser.texts("main")[0]
    (folder / "policies" / "new.yaml").write_text(constraint("needs-cost", "cost"))
    browser.until("return document.querySelector('main').innerText.includes('needs-cost')")


def test_pages_work_without_scripts(browser, console):
    browser.chrome("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.go(f"{console.address}/violations")
        browser.go(f"{console.address}/violations?q=team")
        assert "4 violations" in browser.texts("main")[0]
    finally:
        browser.chrome("Emulation.setScriptExecutionDisabled", value=False)


ONE_POLICY = "/policy?kind=RequiredLabel&name=needs-team"
ONE_RESOURCE = "/resource?apiVersion=v1&kind=Pod&namespace=default&name=web"
PATHS = (*PAGES.values(), "/violations?group=resource", ONE_POLICY, ONE_RESOURCE, "/nowhere")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_light_and_dark_at_a_desk_and_on_a_telephone(browser, console, scheme):
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.chrome("Emulation.setEmulatedMedia", features=media)
    try:
        for path in PATHS:
            browser.go(console.address + path)
            for size in (TELEPHONE, DESKTOP):
                browser.resize(*size)
                low = browser.run(CONTRAST)
                assert low == [], f"{path} at {size}: WCAG 2.2 asks for 4.5 to 1"
            fits(browser)
        assert complaints(browser, console) == []
    finally:
        browser.chrome("Emulation.setEmulatedMedia", features=[])


def complaints(browser, console):
    """Returns the browser's complaints, except those about the page that is missing on purpose."""
    return [one for one in browser.complaints(console.address) if "/nowhere - " not in one]


@pytest.mark.parametrize("path", PATHS)
def test_each_page_can_be_used_by_its_keyboard_alone_and_every_field_has_a_name(
    browser, console, path
):
    browser.go(console.address + path)
    for size in (TELEPHONE, DESKTOP):
        browser.resize(*size)
        assert browser.run(NAMELESS) == [], f"at {size}"
        number = browser.run(NOTE_FOCUS)
        browser.press("\ue004", times=number + 1)
        unmet, unseen = browser.run(WHAT_HAD_FOCUS)
        assert unmet == [], f"no key leads there at {size}"
        assert unseen == [], f"nothing shows that they have the focus at {size}"
    assert complaints(browser, console) == []


NAMELESS = """
const said = one => (one.getAttribute("aria-label") || one.innerText || one.textContent || "").trim();
return [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, [role=region], summary")]
  .filter(one => one.matches("input, select, textarea")
    ? ![...one.labels].some(label => label.firstChild && label.innerText.trim())
    : !said(one))
  .map(one => one.outerHTML.slice(0, 120));
"""

NOTE_FOCUS = """
document.activeElement.blur();
window.getSelection().removeAllRanges();
window.met = new Map();
document.addEventListener("focusin", ({ target }) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(target);
  const box = target.getBoundingClientRect();
  const inside = box.width > 0 && box.left < document.documentElement.clientWidth && box.right > 0;
  const marked = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
  window.met.set(target, inside && marked);
});
window.wanted = [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
  .filter(one => one.getClientRects().length);
return window.wanted.length;
"""
"""Of a group of radio buttons one is met, and arrows lead to the others."""

WHAT_HAD_FOCUS = """
const told = one => one.outerHTML.slice(0, 120);
const groups = new Set([...window.met.keys()].filter(one => one.type === "radio").map(one => one.name));
const isMet = one => window.met.has(one) || one.type === "radio" && groups.has(one.name);
return [window.wanted.filter(one => !isMet(one)).map(told),
  [...window.met].filter(([, seen]) => !seen).map(([one]) => told(one))];
"""


CONTRAST = """
const numbers = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(one => one / 255)
  .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
  .reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0);
const ground = one => {
  for (; one; one = one.parentElement) {
    const found = numbers(getComputedStyle(one).backgroundColor);
    if (found.length < 4 || found[3] === 1) return found;
  }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return dark ? [18, 18, 18] : [255, 255, 255];
};
return [...document.querySelectorAll("body *")]
  .filter(one => one.offsetParent && [...one.childNodes].some(
    child => child.nodeType === 3 && child.data.trim()))
  .map(one => [one.outerHTML.slice(0, 120), light(numbers(getComputedStyle(one).color)),
    light(ground(one))])
  .map(([html, ink, paper]) => [html, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)])
  .filter(([html, contrast]) => contrast < 4.5).slice(0, 5);
"""


def test_each_page_with_nothing_to_show_says_so(browser, tmp_path):
    (tmp_path / "policies").mkdir()
    with RunningConsole(f"--policies={tmp_path / 'policies'}") as console:
        console.ready()
        for heading, path in PAGES.items():
            look(browser, console, path, heading)


def test_500_policies_and_20_000_violations_are_shown_a_page_at_a_time(browser, tmp_path):
    with Listing(tmp_path, KIND) as listing:
        listing.put(TEMPLATES, template())
        listing.put(constraints_of(KIND), *(policy(f"rule-{i}") for i in range(500)))
        listing.put(WGPOLICY.namespaced, *(load_report(5 * i) for i in range(20_000)))
        console = RunningConsole("--kubeconfig", str(listing.kubeconfig))
        with console:
            console.ready()
            until(lambda: console.json("/violations")["violations"] == 20_000, "all violations")
            for heading, path in PAGES.items():
                look(browser, console, path, heading)
            for group, rows in {"": 100, "policy": 100, "namespace": 40, "resource": 100}.items():
                look(browser, console, f"/violations?group={group}", "Violations")
                assert len(browser.texts("tbody tr")) == rows
            listing.__exit__()
            until(lambda: "cannot be asked" in str(console.json("/")["shown"]), "trouble")
            for heading, path in PAGES.items():
                browser.go(console.address + path)
                assert browser.texts("h1") == [heading]
                assert "cannot be asked" in " ".join(browser.texts("[role=alert]"))


def test_one_signs_in_at_the_provider_and_out_again(browser, tmp_path):
    with Listing(tmp_path, KIND) as listing, RunningProvider(ada={}) as provider:
        listing.put(TEMPLATES, template())
        user = f"{provider.issuer}#ada"
        listing.granted = {(user, "templates.gatekeeper.sh", "constrainttemplates", "")}
        with signing(tmp_path, provider, [f"--kubeconfig={listing.kubeconfig}"]) as console:
            browser.go(f"{console.address}/policies")
            assert browser.texts("h1") == ["Who are you?"]
            browser.write("input[name=user]", "ada")
            browser.click("button")
            browser.until("return document.querySelector('h1')?.innerText === 'Policies'")
            until(lambda: look_at(browser, console, "requiredlabel"), "the template")
            assert browser.texts(".visitor span") == ["ada"]
            fits(browser)
            assert browser.complaints(console.address) == []
            browser.click(".visitor button")
            browser.until("return document.querySelector('h1')?.innerText === 'Signed out'")
            assert browser.complaints(console.address) == []
            browser.go(console.address)
            assert browser.texts("h1") == ["Who are you?"]


def look_at(browser: Browser, console: RunningConsole, text: str) -> bool:
    """Whether the list of policies has it."""
    browser.go(f"{console.address}/policies")
    return text in browser.texts("main")[0]
