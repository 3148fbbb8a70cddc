"""Compiles and tries new policies in processes that can be killed.

A policy may run for ever, or take all memory, while it is compiled. Such a process has limits for
both. It returns the outcome as bytes over a socket (``frames``); the parent compiles only policies
that passed there. Large policies in files, and new policies in a cluster, go this way. At start a
child also compiles the known templates, beginning with the last one (``ahead``).
"""
