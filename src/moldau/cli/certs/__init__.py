"""`moldau certs`: an authority of one's own, certificates for brokers and clients, and what is in a file."""
