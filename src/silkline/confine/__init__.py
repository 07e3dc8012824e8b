"""What our processes give up before they touch anything from the web.

Each role has one function in roles.py: reader (parsers and isolated readers), fetcher, runner. Nothing here may fail a
crawl: what the kernel does not offer is left out, and the function says what is in force. `landlock` and `seccomp`
talk to the kernel, `syscalls` has the numbers, `trial` tries the walls of a reader for `silkline doctor`.
"""
