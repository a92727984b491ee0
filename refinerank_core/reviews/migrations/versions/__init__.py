"""One file a version, named after what it does."""
