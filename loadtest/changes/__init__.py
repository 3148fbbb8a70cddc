"""A load that goes on while policies change, beside Gatekeeper under the same changes."""
