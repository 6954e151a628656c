"""One look at a cluster: its topics, its groups, what they committed, and when the first unread record was written."""
