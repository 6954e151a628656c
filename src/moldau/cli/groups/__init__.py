"""`moldau groups`: which groups there are, how far they are behind, and where they read on."""
