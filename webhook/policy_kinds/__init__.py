"""Every kind of policy object, a row each; whoever needs to know a kind asks this table.

:mod:`~webhook.policy_kinds.table` has the rows, :mod:`~webhook.policy_kinds.known` what is asked of
them: which kinds there are, what a replica watches, what the doors over files read, and where each
kind's status goes. A kind beside templates and constraints fills a part of the
:class:`~webhook.review.policy_set.PolicySet`; :mod:`~webhook.policy_kinds.parts` has these. ::

    row = kind_of(gvk_of(document))
    if row is not None and row.read is not None:
        row.read(document)  # raises one of REFUSALS
"""
