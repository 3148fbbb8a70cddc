"""ValidatingAdmissionPolicies and bindings, made of templates and constraints in CEL.

A planner takes the templates and constraints in force and says which objects the API server should
have, and of each constraint why not where it has none. It is pure:
:mod:`webhook.controllers.generate` compares the plan with the cluster and writes what differs.
``waddle check -f policies/ --vap template`` compares what they decide with the webhook.
"""
