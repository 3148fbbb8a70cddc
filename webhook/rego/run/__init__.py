"""What generated code stands on: values, numbers and texts, limits, and the steps that it calls."""
