"""CEL as Kubernetes has it: text in, typed expressions out that evaluate over decoded JSON.

``syntax`` makes a tree of the text, ``check`` finds its types, and ``exact`` evaluates it node by
node, which is the meaning. ``fast`` writes Python functions for the same, and hands over to
``exact`` whenever one raises. ``library`` has Kubernetes' functions, ``run`` the values.

>>> from webhook.cel.check.environment import Environment
>>> from webhook.cel.check.types import DYN
>>> from webhook.cel.engine import compile_expression
>>> from webhook.cel.run.meter import Meter
>>> expression = compile_expression("object.replicas < 3", Environment({"object": DYN}))
>>> expression.evaluate({"object": {"replicas": 2}}, Meter())
True
"""
