"""`moldau pipeline`."""
