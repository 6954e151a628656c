"""What of a pipeline outlives its run: checkpoints, status, and the lock of who runs it."""
