"""`waddle` whose authorities come and go within seconds: `python -m tests.system.hurried serve …`.

Each authority is due for replacement soon after it is made, and trusted for a few seconds before it
signs. The product has no switch for this: its figures are a year and a minute.
"""

import datetime as dt
from functools import partial

from webhook.certificates import session
from webhook.certificates.keeper import ServingCertificate
from webhook.certificates.plan import Lifetimes
from webhook.cli.main import main

LASTING_SECONDS = 20.0
"""From when an authority is made until its successor is. What a test does between two rotations
takes a few seconds."""

TRUST_SECONDS = 6.0
"""The API server here is one, and follows its webhook configurations within a second."""

CHECK_SECONDS = 1.0

LOOKAHEAD = Lifetimes().lookahead

HURRIED = Lifetimes(
    authority=LOOKAHEAD + dt.timedelta(seconds=LASTING_SECONDS), trust_seconds=TRUST_SECONDS
)


if __name__ == "__main__":
    hurry = partial(ServingCertificate, lifetimes=HURRIED, check_seconds=CHECK_SECONDS)
    setattr(session, "ServingCertificate", hurry)  # noqa: B010  # it is no export
    main()
