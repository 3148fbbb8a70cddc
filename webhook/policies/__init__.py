"""Policies in files: read from directories, classified, and loaded into a client.

All objects in the files except templates and constraints are the synced data, as in a cluster. This
package depends on files and the constraint framework, but on no server and no cluster. A broken
file affects only its own policies.

For example, a folder with a template, a constraint and a Namespace gives a client with this
constraint, and ``data.inventory`` with this Namespace.
"""
