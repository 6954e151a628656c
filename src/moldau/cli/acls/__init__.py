"""`moldau acls`: who may do what."""
