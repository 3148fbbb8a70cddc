"""HTTP/1.1 on the admission port: connections, limits, large bodies and fair queues.

A connection is accepted (``acceptor``), its head is read (``head``), its body waits for its turn
(``body``, ``large_bodies``, ``fair_queue``), and the application's answer is sent (``exchange``,
``responder``). This package does not know what a review is.
"""
