"""Asking a cluster in the protocol itself, without a client library: what tools and clients of ours share."""
