"""The OpenAPI document, made from the table of operations."""
