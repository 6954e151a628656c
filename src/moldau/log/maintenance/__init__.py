"""What happens to a log beside appends: recovery, retention, truncation, removal."""
