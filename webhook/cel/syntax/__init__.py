"""From text to a tree: tokens, grammar, macros."""
