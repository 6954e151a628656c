"""Classic groups: members choose a leader, and the leader assigns (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)."""
