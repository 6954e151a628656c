"""What a partition remembers of its producers and their transactions."""
