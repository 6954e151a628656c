"""A plan as frames: its sources read, its views computed, its expectations applied."""
