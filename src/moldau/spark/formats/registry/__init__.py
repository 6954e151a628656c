"""Records whose schemas are in a registry: framed by a schema's id, read as the subject's schema says."""
