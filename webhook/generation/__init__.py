"""Generates ValidatingAdmissionPolicies and bindings from templates and constraints in CEL.

A planner takes the templates and constraints in force. It returns the objects that the API server
should have, and for each constraint without one the reason. It is pure:
:mod:`webhook.controllers.generate` compares the plan with the cluster and writes the differences.
``waddle check -f policies/ --vap template`` compares their decisions with the webhook's.
"""
