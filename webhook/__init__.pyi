from webhook.library import InvalidPoliciesError as InvalidPoliciesError
from webhook.library import NoVerdictError as NoVerdictError
from webhook.library import Policies as Policies
from webhook.library import PolicyWarning as PolicyWarning
from webhook.library import Rego as Rego
from webhook.library import Violation as Violation

__version__: str
