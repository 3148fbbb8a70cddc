"""From syntax trees to Python functions, in stages.

1. :mod:`~webhook.rego.compiler.lower` resolves imports and names, renames
   declared variables and takes calls out of terms (a rule becomes flat literals);
2. :mod:`~webhook.rego.compiler.safety` orders each body so that no variable is
   read before it is bound, or refuses;
3. :mod:`~webhook.rego.compiler.tree` arranges the rules by path;
4. :mod:`~webhook.rego.compiler.checks` refuses conflicts, recursion and unknown
   or misused functions;
5. :mod:`~webhook.rego.compiler.generate` writes Python source, in which only
   names made here and ``repr`` of constants appear, and compiles it.

The stages and their messages follow OPA's (v1/ast/compile.go), so that a policy
which one refuses is refused by the other.
"""
