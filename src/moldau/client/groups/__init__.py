"""Groups as a tool or a monitor sees them: which there are, their members, what they committed, and how far behind."""
