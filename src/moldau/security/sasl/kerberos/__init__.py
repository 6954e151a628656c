"""GSSAPI (RFC 4752): logins with Kerberos tickets, through python-gssapi and MIT's library."""
