"""Runtime of generated code: values, numbers and texts, limits, and the steps that it calls."""
