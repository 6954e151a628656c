"""What a scenario does its worst to: a cluster of ours for the length of a run, or one that is given."""
