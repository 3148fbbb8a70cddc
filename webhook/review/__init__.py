"""Reviews a subject by the whole policy set. Every entry point of the program uses it.

An entry point passes a :class:`~webhook.review.policy_set.PolicySet` and a
:class:`~webhook.review.subject.Subject`. The walk has named stages: exclude by Config → mutate →
expand → match and evaluate → results. It returns ``Found``, or ``Needs``: a Namespace or provider
responses to fetch first. Two loops fetch and walk again, one for synchronous callers and one for
asyncio. ::

    found = review(policies, Subject(AugmentedObject(pod), point=enforcement.AUDIT))
    print(found.responses.results)

Fields of the subject say which stages an entry point leaves out. docs/doors.md lists them.
"""
