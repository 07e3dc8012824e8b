"""What a job brought, in the forms that people and programs want. Reads the store, writes streams and files.

One file for each form; each holds one `Writer`, which is given result after result and never holds many of them, so an
export of a million pages needs no more memory than one of a hundred.
"""
