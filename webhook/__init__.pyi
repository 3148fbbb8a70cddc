from webhook.library import Answer as Answer
from webhook.library import Excuse as Excuse
from webhook.library import InvalidInputError as InvalidInputError
from webhook.library import InvalidPoliciesError as InvalidPoliciesError
from webhook.library import NoVerdictError as NoVerdictError
from webhook.library import Policies as Policies
from webhook.library import PolicyWarning as PolicyWarning
from webhook.library import Rego as Rego
from webhook.library import UnknownPathError as UnknownPathError
from webhook.library import Violation as Violation
from webhook.library import Violations as Violations
from webhook.library import WaddleError as WaddleError

__version__: str
