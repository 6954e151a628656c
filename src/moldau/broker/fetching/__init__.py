"""What a Fetch request reads: sessions, file ranges, and the wait for more."""
