"""Sinks: where drained batches go.

Each module here is one type of sink and is imported only when a configuration
names it. A sink takes a batch of records, each one line of JSON, and either
returns once they are delivered or says why not. Sinks are synchronous: each
has a thread of its own.
"""
