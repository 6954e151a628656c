"""The command lines of tools that are one module each: --help, and what is wrong in one, without a client."""
