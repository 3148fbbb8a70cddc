"""Policies in files: read from directories, told apart, and brought into a client.

Everything in the files that is neither a template nor a constraint is the synced
data, as a cluster would have it. Knows files and the constraint framework;
knows no server and no cluster.
"""
