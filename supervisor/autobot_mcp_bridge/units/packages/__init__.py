"""Servers from PyPI and npm: named, installed into the store, found again."""
