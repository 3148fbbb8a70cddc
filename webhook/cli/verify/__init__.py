"""waddle verify: suites of cases run against policies, and its reports."""
