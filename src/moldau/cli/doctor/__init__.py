"""`moldau doctor`: looks at this machine and a cluster as an experienced operator would."""
