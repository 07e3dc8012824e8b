"""Measures costs. Benchmarks print tables and never assert a time."""
