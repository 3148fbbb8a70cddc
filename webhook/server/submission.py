"""Admission of Gatekeeper's own resources: refuses those that could not work.

Codes are Gatekeeper's (pkg/webhook/policy.go, validateGatekeeperResources): 422 for faults of the
user, and 500 where Gatekeeper answers 500. Compiling a template takes long, so another thread
compiles it beforehand; this module checks the result. Gatekeeper does not compile at admission: a
fault appears in the template's status only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.config import CONFIG, CONFIG_NAME
from webhook.api.encoding import encode
from webhook.constraint import constraint, enforcement, group, schema, template
from webhook.constraint.depth import is_deeper
from webhook.constraint.enforcement import InvalidEnforcementAction
from webhook.constraint.errors import ConstraintFrameworkError, MissingTemplate
from webhook.constraint.names import POLICY_NAME_MAX
from webhook.mutation.mutator import UNMUTATED_GROUPS
from webhook.policies.advice import advice_on_document
from webhook.policy_kinds.kind import REFUSALS, PolicyKind
from webhook.policy_kinds.known import EXTENSION_GROUPS, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.client import Client

GROUPS: Final = UNMUTATED_GROUPS | EXTENSION_GROUPS
"""Of the objects that are checked when they are admitted."""


class SubmissionFault(NamedTuple):
    """The fault that compiling a policy under admission has found."""

    message: str
    is_passing: bool = False
    """Whether the machine kept it from being tried: nothing is known against its text."""


class TriedSubmission(NamedTuple):
    """The result of trying a policy under admission."""

    fault: SubmissionFault | None
    checks: Client | None = None
    """The checks by the API server's newer version of the template; None if this replica has it."""


TOO_DEEP: Final = "it is nested too deeply for a policy"


class Inadmissible(NamedTuple):
    """Why a resource must not be admitted; ``code`` is the answer's."""

    code: int
    message: str
    lacks_template: bool = False
    """Whether all that is wrong is that its template is not known here, which may be on its way."""


NOTHING_SENT: Final = Inadmissible(
    500, "couldn't get version/kind; json parse error: unexpected end of JSON input"
)
"""The API machinery's answer to an empty body."""


def check(
    request: AdmissionRequest, checks: Client, *, any_action: bool = False
) -> Inadmissible | None:
    """Returns why a resource of Gatekeeper cannot work and is refused; None if it is not refused.

    ``any_action`` leaves enforcement actions unchecked. Every resource can be deleted, even an
    invalid one; Gatekeeper refuses the deletion if the schema or the template is wrong.
    """
    if request.kind.group not in GROUPS or request.operation == "DELETE":
        return None
    try:
        return _check(request, checks, any_action=any_action)
    except RecursionError:
        # The document is nested too deeply for the checks.
        return Inadmissible(422, TOO_DEEP)


def _check(request: AdmissionRequest, checks: Client, *, any_action: bool) -> Inadmissible | None:
    of_group, kind = request.kind.group_kind
    if of_group != "status.gatekeeper.sh" and len(request.name.encode()) > POLICY_NAME_MAX:
        length = len(request.name.encode())
        return Inadmissible(
            500,
            f"resource cannot have metadata.name larger than {POLICY_NAME_MAX} char; length: {length}",
        )
    if _is_too_deep_already(request):
        return None
    if of_group == template.GROUP and kind == template.KIND:
        return _check_template(request, checks)
    if constraint.is_constraint(request.kind):
        return _check_constraint(request, checks, any_action=any_action)
    if of_group == CONFIG.group and kind == CONFIG.kind and request.name != CONFIG_NAME:
        return Inadmissible(422, f"config resource must have name '{CONFIG_NAME}'")
    row = kind_of(request.kind)
    return None if row is None or row.read is None else _check_extension(request, row.read)


def _is_too_deep_already(request: AdmissionRequest) -> bool:
    """Whether the object is nested too deeply but its spec is unchanged.

    Gatekeeper admits such objects. Users can thus still delete them, or remove their finalizers.
    """
    document, before = request.object, request.old_object
    if before is None or document is None or not is_deeper(before.get("spec")):
        return False
    return _are_equal(before.get("spec"), document.get("spec"))


def policy_to_try(request: AdmissionRequest) -> dict[str, Any] | None:
    """Returns the new template or constraint of a request; None if its spec is unchanged.

    An invalid one must remain deletable, and may lose a finalizer or gain a label.
    """
    of_group = request.kind.group
    if of_group != constraint.GROUP and (
        of_group != template.GROUP or request.kind.kind != template.KIND
    ):
        return None
    return _brought_in(request)


def _brought_in(request: AdmissionRequest) -> dict[str, Any] | None:
    """Returns the object of a request that makes it, or changes its spec."""
    return request.object if brings_spec(request) else None


def brings_spec(request: AdmissionRequest) -> bool:
    """Whether a request makes an object, or changes the spec of one."""
    document, before = request.object, request.old_object
    if request.operation not in ("CREATE", "UPDATE") or document is None:
        return False
    return before is None or not _are_equal(before.get("spec"), document.get("spec"))


def _are_equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except RecursionError:
        return encode(a, sort_keys=True) == encode(b, sort_keys=True)


def notice(request: AdmissionRequest, checks: Client) -> str:
    """Returns the warning for an admitted policy; may be empty."""
    row = kind_of(request.kind)
    if row is not None and row.role == "extension":
        return _notice_of_extension(request, row)
    if row is None or row.role not in ("template", "constraint"):
        return ""
    document = _brought_in(request)
    if document is None:
        return ""
    if constraint.is_constraint(request.kind):
        return "; ".join(problem.message for problem in advice_on_document(document))
    return checks.missing_engine(document) if request.kind.kind == template.KIND else ""


def _notice_of_extension(request: AdmissionRequest, row: PolicyKind) -> str:
    document = request.object
    if request.operation not in ("CREATE", "UPDATE") or document is None:
        return ""
    try:
        return "; ".join(row.warnings(document))
    except REFUSALS:
        return ""  # an unchanged policy


def check_compiled(fault: SubmissionFault | None) -> Inadmissible | None:
    """Refuses a policy that does not compile, or did not end."""
    return None if fault is None else Inadmissible(422, fault.message)


def submitted(request: AdmissionRequest) -> dict[str, Any] | None:
    """Returns the object of a request: on DELETE the old one."""
    return request.old_object if request.operation == "DELETE" else request.object


def _check_template(request: AdmissionRequest, checks: Client) -> Inadmissible | None:
    document = request.object
    if document is None:
        return NOTHING_SENT
    for operations in _operations(document):
        if "*" in operations and len(operations) > 1:
            return Inadmissible(500, "if '*' is present, must not specify other operations")
    try:
        crd = checks.create_crd(document)
    except ConstraintFrameworkError as error:
        return Inadmissible(422, str(error))
    fault = schema.unsatisfiable_fault(crd) if policy_to_try(request) is not None else ""
    return Inadmissible(422, fault) if fault else None


def _check_extension(
    request: AdmissionRequest, read: Callable[[dict[str, Any]], Any]
) -> Inadmissible | None:
    """Refuses a policy of another kind that cannot be used; it remains deletable."""
    document = _brought_in(request)
    if document is None:
        return None
    try:
        read(document)
    except REFUSALS as error:
        return Inadmissible(422, str(error))
    return None


def _operations(document: dict[str, Any]) -> list[list[Any]]:
    spec = document.get("spec")
    targets = spec.get("targets") if type(spec) is dict else None
    lists = [
        target.get("operations")
        for target in (targets if type(targets) is list else ())
        if type(target) is dict
    ]
    return [operations for operations in lists if type(operations) is list]


def _check_constraint(
    request: AdmissionRequest, checks: Client, *, any_action: bool
) -> Inadmissible | None:
    document = request.object
    if document is None:
        return NOTHING_SENT
    if group.is_group(document) and _brought_in(request) is None:
        return None  # Its members may be gone: it loses a finalizer, or gains a label.
    try:
        checks.validate_constraint(document)
        action = enforcement.action_of(document)
    except MissingTemplate as error:
        return Inadmissible(422, str(error), lacks_template=True)
    except ConstraintFrameworkError as error:
        return Inadmissible(422, str(error))
    if action and not any_action:
        try:
            enforcement.validate(document, action)
        except InvalidEnforcementAction as error:
            return Inadmissible(500, str(error))
    return None
