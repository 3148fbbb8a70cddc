"""What evaluations stand on: values, equality, order, arithmetic, conversions, cost."""
