"""`moldau replica-verification`."""
