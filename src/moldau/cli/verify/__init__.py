"""`moldau verify`: the scenarios that operators try before they trust a cluster, under load, with a verdict on each."""
