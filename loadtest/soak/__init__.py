"""A soak: three replicas in a cluster under load for long, policies that change, replicas that end.

No verdict may be wrong, no request may fail outside a connection that a kill ended, and the memory
of the replica that is left alone must stay flat.
"""
