"""Waddle beside Kyverno's admission controller, as users run it, with the same policies."""
