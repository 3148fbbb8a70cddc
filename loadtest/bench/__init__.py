"""The serving benchmark: our server and Gatekeeper's, one machine, one run, the same requests.

`python -m loadtest.bench` starts both with the same policies, certificate and core, sends the same
bodies over TLS from another core, in alternated rounds, and writes medians with the machine's
description to `loadtest/results/`.
"""
