"""The constraint framework: templates, constraints and data in, verdicts out.

:class:`webhook.constraint.client.Client` takes ConstraintTemplates, constraints
and referential data and gives an immutable
:class:`webhook.constraint.snapshot.Snapshot`, whose ``review`` is the one path
by which admission, audit and the command line decide. It knows neither HTTP nor
the API server; engines come in as :class:`webhook.constraint.driver.Driver`,
kinds of things to review as :class:`webhook.constraint.target.Target`.

>>> from webhook.constraint.client import Client
>>> from webhook.constraint.drivers.rego import RegoDriver
>>> from webhook.constraint.targets.known import TARGETS
>>> Client(targets=TARGETS, drivers=[RegoDriver()]).snapshot.constraints
()
"""
