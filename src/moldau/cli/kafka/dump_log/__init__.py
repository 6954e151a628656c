"""`moldau dump-log`: what is in the files of a log directory."""
