"""What policies ask of providers: the questions, the answers, and who asks over HTTPS.

An evaluation never waits. It notes each call of ``external_data`` that nobody has answered yet as a
:class:`~webhook.external_data.exchange.ProviderRequest`; somebody has these answered, and evaluates
again with what the providers said. ::

    answers = {ProviderRequest("images", ("nginx",)): ProviderResponse((("nginx", "ok"),), (), 200)}
"""
