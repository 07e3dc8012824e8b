"""The routes of the API, a file for each group. Each parses the request, calls one function and answers."""
