"""The HTTPS server: bytes in, decisions out; it survives any input of a client.

:mod:`webhook.server.http.connection` is uvicorn's protocol class, with the limits and timeouts that
uvicorn lacks; :mod:`webhook.server.application` is the Starlette application;
:mod:`webhook.server.admission` decides. A decision is answered with 200. An error that
``failurePolicy`` should decide is answered with another code.

It knows snapshots of :mod:`webhook.constraint`, and neither files nor the API server.
"""
