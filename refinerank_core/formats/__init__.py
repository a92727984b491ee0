"""Foreign files: one module a format, each with `write` and, where it can come in, `read`."""
