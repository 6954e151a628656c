"""Records in Avro."""
