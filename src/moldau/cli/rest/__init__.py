"""`moldau rest`: the REST proxy."""
