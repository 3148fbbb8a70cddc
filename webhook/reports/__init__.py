"""Policy reports: the violations of each resource, kept in the cluster for users and viewers.

The input is resources and the results of their reviews. The output is PolicyReports of
``wgpolicyk8s.io/v1alpha2`` or Reports of ``openreports.io/v1alpha1``. No intermediate report is
ever stored in the cluster, and a report that would stay equal is not written. Building and
comparing are pure; :mod:`webhook.reports.writer` and the modules that use it do the I/O. Resources
are reviewed by the audit's own reviewer, so that both have the same results.
"""
