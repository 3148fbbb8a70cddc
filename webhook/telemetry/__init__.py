"""Sends traces and metrics to an OpenTelemetry collector; not imported unless it is on.

Other code records events as plain values. A separate thread makes messages of them and sends them.
The package must know neither decisions nor flags.

For example, the trace of an admission is times and names until the thread makes spans of it.
"""
