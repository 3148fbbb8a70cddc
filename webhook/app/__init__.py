"""The process of ``waddle serve``: everything else put together, started, watched and stopped.

Four threads: the first one answers admission; one answers probes and metrics,
which must not wait for a review; one reads policies and certificates from the
disk when they change; with ``--kubernetes`` one follows the cluster, and does
there what the third does for a directory. They share whole values swapped by
reference. Templates that are being admitted are compiled on a fifth.
"""
