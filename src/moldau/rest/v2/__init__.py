"""Version 2 of the API: formats by media types, and consumer instances."""
