"""What things cost. Benchmarks print tables and never assert a time."""
