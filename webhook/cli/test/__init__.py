"""waddle test: objects in files reviewed by policies in files, and its reports."""
