"""Pages that show policies in force, their results and replicas; they never write.

A source (files or a cluster) makes one picture of all data. Pages depend on the picture only, and
templates escape every value. :mod:`webhook.console.rights` asks the API server for the visitors'
rights. ``waddle console --policies policies/`` starts a console.
"""
