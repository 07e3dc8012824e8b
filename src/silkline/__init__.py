"""Silkline: web crawls that never lose their thread."""

__version__ = "0.1.0"
