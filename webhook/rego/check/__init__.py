"""From syntax trees to checked, ordered literals: names, scope, safety, types, strict rules.

The stages and their messages follow OPA's (v1/ast/compile.go), so that both refuse the same
policies.

For example, ``x > y; y := 1; x := 2`` becomes ``y := 1; x := 2; x > y``: a literal comes once its
variables are bound.
"""
