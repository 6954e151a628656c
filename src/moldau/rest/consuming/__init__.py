"""From records to JSON: consumer instances of v2, and streams."""
