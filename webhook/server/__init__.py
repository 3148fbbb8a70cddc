"""The HTTPS server: bytes in, decisions out, and never stopped by what a client sends.

:mod:`webhook.server.http.connection` is uvicorn's protocol class, with the limits and
timeouts that uvicorn has not; :mod:`webhook.server.application` is the Starlette
application; :mod:`webhook.server.admission` decides. What is a decision is
answered 200; what ``failurePolicy`` should decide is answered with another code.

It knows snapshots of :mod:`webhook.constraint`, and neither files nor the API
server.
"""
