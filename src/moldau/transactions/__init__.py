"""The transaction coordinator: state machines over `__transaction_state`."""
