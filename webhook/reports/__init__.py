"""Policy reports: what is wrong with each resource, kept in the cluster for people and viewers.

What enters are resources and what a review found in them; what leaves are
PolicyReports of ``wgpolicyk8s.io/v1alpha2`` or Reports of ``openreports.io/v1alpha1``.
A report is final from its first write on: nothing intermediate is ever stored in
the cluster, and a report that would say the same is not written. Building and
comparing are pure; :mod:`webhook.reports.writer` and the modules that use it do
the I/O. Resources are reviewed by the audit's own reviewer, so that both find the same.
"""
