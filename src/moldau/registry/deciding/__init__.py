"""What a request makes of the state: records to write and a reply, or a refusal. Nothing here waits or writes."""
