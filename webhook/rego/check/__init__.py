"""From syntax trees to checked, ordered literals: names, scope, safety, types, strict rules.

The stages and their messages follow OPA's (v1/ast/compile.go), so that both refuse the same
policies.
"""
