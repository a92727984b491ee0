"""The commands of `python -m refinerank_core`: one file each."""
