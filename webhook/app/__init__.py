"""The process of ``waddle serve``: assembles, starts, watches and stops all other parts.

Threads:

- the first answers admissions;
- one answers probes and metrics, which must not wait for a review;
- one reads policies and certificates from the disk when they change;
- one follows the cluster, with ``--kubernetes``, and puts its policies in force;
- one reviews the objects in the cluster, with ``--operation=audit``;
- one compiles templates that are being admitted.

They share immutable values, replaced by reference. A process that only audits has no admission
port; its first thread waits for signals.
"""
