"""External data: requests of policies, answers of providers, and the HTTPS client.

An evaluation never waits. It notes each unanswered call of ``external_data`` as a
:class:`~webhook.external_data.exchange.ProviderRequest`. The caller sends these requests, and
evaluates again with the answers. ::

    answers = {ProviderRequest("images", ("nginx",)): ProviderResponse((("nginx", "ok"),), (), 200)}
"""
