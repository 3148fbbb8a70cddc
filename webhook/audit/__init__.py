"""Audit: reviews the existing objects of a cluster as in an admission now.

A sweep lists the kinds that constraints match, page by page. It reviews each object by one snapshot
with the code of admissions, at the audit enforcement point. Sinks receive the results: statuses,
the log, the decision log, Events, reports. This package must not depend on its callers or on files.

For example, a Pod without a label that ``K8sRequiredLabels`` requires becomes an entry of the
constraint's ``status.violations``, a line of the log, and a record of the decision log.
"""
