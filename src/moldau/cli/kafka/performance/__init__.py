"""`moldau producer-perf`, `consumer-perf` and `e2e-latency`: how fast a cluster takes records and gives them."""
