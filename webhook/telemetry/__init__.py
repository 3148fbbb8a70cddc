"""Traces and numbers, sent to an OpenTelemetry collector; nothing of it is there unless it is on.

What happens is noted as plain values where it happens; a thread of its own makes messages of them
and sends them. It must not know how anything is decided, nor flags.
"""
