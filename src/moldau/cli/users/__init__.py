"""`moldau users`: who may log in with SCRAM."""
