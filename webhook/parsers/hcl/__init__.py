"""HashiCorp's configuration language, version 2: text to a tree that knows where it was written."""
