"""One review for every door: from a thing to what the whole of the policies says of it.

A door hands in a :class:`~webhook.review.policy_set.PolicySet` and a
:class:`~webhook.review.subject.Subject`. The walk goes through named stages: what a Config
excludes → mutate → expand → match and evaluate → results. It answers ``Found``, or ``Needs``:
what somebody has to fetch first. Two loops fetch, one for synchronous callers and one for asyncio. ::

    found = review(policies, Subject(AugmentedObject(pod), point=enforcement.AUDIT))
    print(found.responses.results)

What a door leaves out on purpose it says by a field of its subject. docs/doors.md lists it.
"""
