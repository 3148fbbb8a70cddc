"""The exporter: decisions become records, wait in a bounded queue, and leave by a transport.

Input are reviews on the admission thread, which never waits for the exporter. It is independent of
the sidecar's queue and of sinks.
"""
