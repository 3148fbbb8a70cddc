"""strings.render_template: Go's text/template."""
