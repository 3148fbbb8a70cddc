"""Sinks: the destinations of drained batches.

Each module here is one type of sink, and is imported only if a configuration names it. A sink takes
a batch of records, each one line of JSON. It returns once they are delivered, or raises the reason.
Sinks are synchronous: each has a thread of its own.
"""
