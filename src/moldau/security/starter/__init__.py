"""Security in one step: an authority, a certificate and two users, made by the first start that wants them."""
