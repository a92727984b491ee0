"""The page in headless Chromium, with models that are pretended."""
