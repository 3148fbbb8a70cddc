"""How soon a change of policy is enforced, and what it costs the API server, beside Gatekeeper."""
