"""The routes of the API, a file for each group. Each parses, calls one function and renders."""
