"""Writes the results of a job in several formats. Reads the store, writes streams and files.

There is one file for each format, with one `Writer`. A writer gets one result after the other and keeps only a few, so
an export of a million pages needs no more memory than one of a hundred.
"""
