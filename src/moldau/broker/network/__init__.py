"""The network edge: listeners, connections, frames in and replies out."""
