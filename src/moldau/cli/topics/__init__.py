"""`moldau topics`."""
