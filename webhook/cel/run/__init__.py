"""Values of CEL at run time: equality, order, arithmetic, conversions, cost."""
