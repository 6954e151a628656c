"""`moldau retention`."""
