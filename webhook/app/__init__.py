"""The process of ``waddle serve``: everything else put together, started, watched and stopped.

Three threads: the first one answers admission; one answers probes and metrics,
which must not wait for a review; one reads policies and certificates from the
disk when they change. They share whole values swapped by reference.
"""
