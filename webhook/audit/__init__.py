"""Audit: what is in the cluster already, reviewed as if it were admitted now.

A sweep lists the kinds that constraints match, page by page, and reviews each
object by the same snapshot and path as admission, at the audit enforcement
point. What it finds goes to sinks: statuses, the log, the decision log, Events,
reports. It must not know who put it together, nor files.
"""
