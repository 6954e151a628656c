"""From JSON to records, and their deliveries."""
