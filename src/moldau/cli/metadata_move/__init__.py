"""`moldau metadata-move`."""
