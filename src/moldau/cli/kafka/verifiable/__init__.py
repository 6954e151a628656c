"""`moldau verifiable-producer` and `verifiable-consumer`: clients that say each thing they do in a line of JSON."""
