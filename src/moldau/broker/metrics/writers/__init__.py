"""What is told: each module writes the metrics of one subject, most of them from state that is there anyway."""
