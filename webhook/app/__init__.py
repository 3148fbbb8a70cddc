"""The process of ``waddle serve``: everything else put together, started, watched and stopped.

Threads: the first one answers admission; one answers probes and metrics,
which must not wait for a review; one reads policies and certificates from the
disk when they change; with ``--kubernetes`` one follows the cluster, and does
there what the third does for a directory; with ``--operation=audit`` one reviews
what the cluster holds. They share whole values swapped by reference. Templates
that are being admitted are compiled on another. A process that only audits has
no admission port, and its first thread waits for signals.
"""
