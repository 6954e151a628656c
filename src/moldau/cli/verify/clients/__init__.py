"""Producers and consumers in processes of their own, so that a scenario can end and kill them."""
