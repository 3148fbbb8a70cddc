"""Settings: what argv and the environment say, validated once and passed down.

:mod:`webhook.settings.flags` reads Go's flag syntax, :mod:`webhook.settings.serve`
has every flag of ``waddle serve`` in groups, each a value of its own,
:mod:`webhook.settings.gatekeeper` knows the flags of Gatekeeper that mean something
else here. Nothing imports a setting as a global.

>>> from webhook.settings.reading import read
>>> read(["--policies=policies", "--port=9443"], {}).serving.port
9443
"""
