"""`moldau plan`: partitions, brokers and disks for a wanted load."""
