"""Keys and values of records by a schema registry: what `moldau consume` shows as JSON, `moldau produce` writes."""
