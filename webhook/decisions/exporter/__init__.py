"""The exporter: decisions become records, wait in a bounded queue, and leave by a transport.

What enters are reviews on the admission thread, which never waits for it. It must not know the
sidecar's queue, nor sinks.
"""
