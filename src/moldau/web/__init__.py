"""What HTTP servers of ours have in common: listeners, limits, logins, errors, metrics; uvicorn and starlette below."""
