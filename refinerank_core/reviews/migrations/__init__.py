"""Versions of the database, run by Alembic when a store is opened; `versions/` holds one file each.

A version is never edited once it was released: a change of the tables is a new file.
"""
