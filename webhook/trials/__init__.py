"""Policies that nobody has had in force are compiled and tried by processes that can be ended.

A policy may take for ever, or all memory, while it is compiled. Such a process has bounds of both.
It says what it would come to, as bytes over a socket (``frames``); the parent compiles for itself
only what ended well there. Large policies in files, and what is new in a cluster, go this way.
"""
