"""`moldau sql`."""
