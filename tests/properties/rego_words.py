"""Texts of Rego by chance."""

WORDS = (
    *("package", "import", "as", "default", "else", "not", "some", "with", "null", "true"),
    *("in", "every", "contains", "if", "and", "or", "rego.v1", "rego.v2", "future.keywords"),
    *("{", "}", "[", "]", "(", ")", ",", ";", ":", ":=", "=", "==", "|", "&", "+", "-", "*", "."),
    *("\n", " ", "x", "y", "input", "data", "_", "1", "0.5", '"s"', "`r`", '$"a{', '}b"', "#c\n"),
    *('"', "`", '$"', "\\", "!", "set()", "p", "# METADATA\n# title: x\n"),
)
