"""From syntax trees to checked, ordered literals: names, scope, safety, types, strict rules.

The stages and their messages follow OPA's (v1/ast/compile.go), so that a policy which one refuses
is refused by the other.
"""
