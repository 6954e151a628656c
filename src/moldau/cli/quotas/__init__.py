"""`moldau quotas`: limits of users, client ids and addresses."""
