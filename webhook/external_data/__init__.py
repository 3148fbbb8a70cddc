"""External data: the questions of policies, providers' answers, and the HTTPS client.

An evaluation never waits. It notes each call of ``external_data`` that nobody has answered yet as a
:class:`~webhook.external_data.exchange.ProviderRequest`; somebody has these answered, and evaluates
again with what the providers said. ::

    answers = {ProviderRequest("images", ("nginx",)): ProviderResponse((("nginx", "ok"),), (), 200)}
"""
