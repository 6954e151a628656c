"""What a broker tells of itself over HTTP, where `metrics.listener` is set; another one loads none of this."""
