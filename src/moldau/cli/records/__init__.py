"""`moldau produce` and `moldau consume`, and the forms that records have there."""
