"""HTTP/1.1 on the admission port: connections, limits, large bodies, and whose turn it is.

A connection is accepted (``acceptor``), its head is read (``head``), its body waits for its turn
(``body``, ``large_bodies``, ``fair_queue``), and what the application answers goes out
(``exchange``, ``responder``). Nothing here knows what a review is.
"""
