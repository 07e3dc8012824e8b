"""Metrics over all processes of a machine. families.py lists every family; docs/reference/metrics.md is made from it.

A process counts in its own **meter** (meter.py): a file in the data directory that it has mapped. A store into the
mapping survives the process, and the next process of the same role continues with the same meter. So the sum over all
meters (gather.py) has the counts of living and dead processes. exposition.py writes the text that Prometheus reads.
"""
