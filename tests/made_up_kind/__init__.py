"""A kind of policy that there is not: what a new one needs, and no more.

``excuse.py`` has its reader and its row, ``crds.yaml`` its CRD and that of its statuses. ``__main__.py``
adds the row to the table and asks every door, in a process of its own.
"""
