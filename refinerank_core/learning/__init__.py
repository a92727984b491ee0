"""Learning from reviews: accepted and corrected boxes teach a RefineNet."""
