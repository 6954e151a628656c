"""Clients' own metrics (KIP-714): who is asked for which, and what they pushed.

A broker without metrics loads none of it.
"""
