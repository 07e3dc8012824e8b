"""Silkline: a web crawler that loses no work in a crash."""

__version__ = "0.1.0"
