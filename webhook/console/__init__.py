"""Pages that show what is in force, what it finds and who enforces it; nothing here writes.

A source (files or a cluster) makes one picture of all that is shown. Pages are made of the picture
alone, and drawn by templates that escape every value. Who may read what is asked of the API
server, by :mod:`webhook.console.rights`. ``waddle console --policies policies/`` starts one.
"""
