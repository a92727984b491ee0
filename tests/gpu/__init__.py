"""Tests that need a CUDA card."""
