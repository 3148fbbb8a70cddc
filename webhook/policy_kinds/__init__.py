"""The table of all kinds of policy objects, with a row for each kind.

:mod:`~webhook.policy_kinds.table` has the rows. :mod:`~webhook.policy_kinds.known` has the queries:
the existing kinds, the kinds that a replica watches, those that commands over files read, and the
kind of each status. A kind beside templates and constraints fills a part of the
:class:`~webhook.review.policy_set.PolicySet`; :mod:`~webhook.policy_kinds.parts` has the parts. ::

    row = kind_of(gvk_of(document))
    if row is not None and row.read is not None:
        row.read(document)  # raises one of REFUSALS
"""
