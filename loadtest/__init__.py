"""Load tests and benchmarks; their figures are in results/."""
