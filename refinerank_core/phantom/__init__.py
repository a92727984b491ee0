"""Phantom surgery: seeded videos with exact truth, for training, study and samples."""
