"""Records that don't fit: what happens to them, where they are kept, and how they are sent back."""
