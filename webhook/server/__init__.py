"""The HTTPS server: bytes in, decisions out; it survives any input of a client.

:mod:`webhook.server.http.connection` has limits and timeouts for every part of a request;
:mod:`webhook.server.application` finds the endpoint of a path; :mod:`webhook.server.admission`
decides. A decision is answered with 200. An error that
``failurePolicy`` should decide is answered with another code.

It knows snapshots of :mod:`webhook.constraint`, and neither files nor the API server.
"""
