"""CEL as in Kubernetes: text in, typed expressions out that evaluate over decoded JSON.

``syntax`` parses the text, ``check`` finds the types, and ``exact`` evaluates the tree node by
node, which defines the result. ``fast`` writes equivalent Python functions, and ``exact`` takes
over whenever one raises. ``library`` has Kubernetes' functions, ``run`` the values.

>>> from webhook.cel.check.environment import Environment
>>> from webhook.cel.check.types import DYN
>>> from webhook.cel.engine import compile_expression
>>> from webhook.cel.run.meter import Meter
>>> expression = compile_expression("object.replicas < 3", Environment({"object": DYN}))
>>> expression.evaluate({"object": {"replicas": 2}}, Meter())
True
"""
