"""Adapters around the frozen models: the only code that knows transformers."""
