"""Connections of listeners with TLS, with logins, or with both. A plain listener loads nothing of this."""
