"""`moldau transactions`."""
