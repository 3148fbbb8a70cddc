"""Go's own forms, which OPA and cel-go show: quoted strings, numbers, times, URLs, text templates.

Both languages of policies stand on Go's libraries, and their answers show it. Each module has one
form, held to Go's by tests that ask the real programs. It must not know either language.

>>> from webhook.golang.floats import float_text
>>> float_text(1e21)
'1e+21'
"""
