"""Client quotas at work: pure rates and limits with the time as an argument, and what they do to answers."""
