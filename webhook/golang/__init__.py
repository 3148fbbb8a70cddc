"""Go's own forms, which OPA and cel-go show: quoted strings, numbers, times, URLs, text templates."""
