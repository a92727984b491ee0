"""Reviews: an append-only record of what people judged, and the current state folded from it."""
