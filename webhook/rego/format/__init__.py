"""Formats Rego files byte by byte like OPA's ``fmt``; comments stay.

Start with ``module``. A parsed file becomes nodes with the source text of each (``placed``), as the
layout depends on the original lines. Then lines are written from the nodes.
"""
