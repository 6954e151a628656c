"""Endpoints of the registry."""
