"""Takes rights away from our processes before they read anything from the web.

Each role has one function in roles.py: reader (parsers and isolated readers), fetcher, runner. An error here does not
stop a crawl: a protection that the kernel does not offer is left out, and the function returns what is in force.
`landlock` and `seccomp` call the kernel, `syscalls` has the numbers of system calls, and `trial` tests the protection
for `silkline doctor`.
"""
