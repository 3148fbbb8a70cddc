"""Exceptions, which excuse known violations for a time.

Policies are evaluated first; matching exceptions then excuse their violations. So conforming
objects cost nothing, and the excused violations are known exactly. For example an exception of the
container `agent` lets a Pod in if all that the policies found is gone when it is reviewed without it.

:mod:`~webhook.exceptions.reading` reads an object, :mod:`~webhook.exceptions.stage` combines all
objects into the stage of a review, :mod:`~webhook.exceptions.parts` removes parts from an object,
and :mod:`~webhook.exceptions.without_parts` reviews it again.
"""
