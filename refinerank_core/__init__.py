"""RefineRank: answer a procedural question on surgical video with one box per requested time."""

__version__ = "0.1.0"
