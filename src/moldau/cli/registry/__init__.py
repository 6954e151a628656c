"""`moldau registry`: a schema registry in front of a cluster."""
