"""Clients and this bridge put in touch with each other."""
