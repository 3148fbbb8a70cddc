"""Settings: arguments and environment variables, validated once and passed down.

:mod:`webhook.settings.flags` reads Go's flag syntax. :mod:`webhook.settings.serve` has all flags of
``waddle serve`` in groups, each a separate value. :mod:`webhook.settings.gatekeeper` has
Gatekeeper's flags that ``waddle serve`` lacks. No module imports a setting as a global.

>>> from webhook.settings.reading import read
>>> read(["--policies=policies", "--port=9443"], {}).serving.port
9443
"""
