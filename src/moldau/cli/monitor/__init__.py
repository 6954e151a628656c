"""`moldau monitor`: the lag of consumer groups, once or as a service, and dashboards of it."""
