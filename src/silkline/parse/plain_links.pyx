# cython: language_level=3, boundscheck=False, wraparound=False
"""Resolves the links that need no URL parser: with a host of plain letters or an IPv4 address, a plain path and query.

The same rules as in `silkline.model.url`, a letter at a time. A link that they do not decide is left to that module.
"""

from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_GET_LENGTH
from libc.string cimport memcmp

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)

cdef enum:
    IN_PATH = 1
    IN_QUERY = 2
    IN_NAME = 4  # the first part of a relative path
    IN_HOST = 8
    LONGEST = 8192
    LONGEST_HOST = 253

cdef unsigned char SORTS[256]


cdef fill():
    cdef bytes letters = b"abcdefghijklmnopqrstuvwxyz", digits = b"0123456789"
    for at in range(256):
        SORTS[at] = 0
    for letter in letters + letters.upper() + digits + b"_-.~!$&()*+,;=@":
        SORTS[letter] = IN_PATH | IN_QUERY | IN_NAME
    for letter in b":/":
        SORTS[letter] = IN_PATH | IN_QUERY
    SORTS[<unsigned char>c"'"] = IN_PATH | IN_NAME
    SORTS[<unsigned char>c"?"] = IN_QUERY
    for letter in letters + digits + b"-":
        SORTS[letter] |= IN_HOST


fill()


def plain_links(list hrefs not None, str origin not None, str folder not None):
    """The canonical URL of each link on a page with this origin in this folder; None where it takes a parser."""
    cdef list found = []
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(origin), length, start, end
    cdef const unsigned char *letters
    cdef const unsigned char *here = NULL
    cdef str href
    if PyUnicode_IS_ASCII(origin):
        here = <const unsigned char *>PyUnicode_1BYTE_DATA(origin)
    for href in hrefs:
        if href is None:  # Cython lets it pass as a `str`
            raise TypeError("a link is a text, not None")
        length = PyUnicode_GET_LENGTH(href)
        if here == NULL or length == 0 or length > LONGEST or not PyUnicode_IS_ASCII(href):
            found.append(None)
            continue
        letters = <const unsigned char *>PyUnicode_1BYTE_DATA(href)
        if letters[0] == c"/":
            end = -1 if length > 1 and letters[1] == c"/" else end_of_path(letters, 0, length)
            if end < 0 or end + size > LONGEST:
                found.append(None)
            else:
                found.append(origin + (href if end == length else href[:end]))
            continue
        if length > size and letters[size] == c"/" and memcmp(letters, here, size) == 0:
            end = end_of_path(letters, size, length)
        elif length > 8 and (memcmp(letters, b"https://", 8) == 0 or memcmp(letters, b"http://", 7) == 0):
            start = end_of_host(letters, 8 if letters[4] == c"s" else 7, length)
            end = -1 if start < 0 else end_of_path(letters, start, length)
        else:
            end = end_of_relative(letters, length)
            if end < 0 or end + PyUnicode_GET_LENGTH(folder) > LONGEST:
                found.append(None)
            else:
                found.append(folder + (href if end == length else href[:end]))
            continue
        found.append(None if end < 0 else href if end == length else href[:end])
    return found


cdef Py_ssize_t end_of_path(const unsigned char *letters, Py_ssize_t at, Py_ssize_t length) noexcept nogil:
    """Where the path and the query end that start here; -1 if they are not canonical as they are."""
    cdef unsigned char letter, sort = IN_PATH
    cdef Py_ssize_t query = -1
    while at < length:
        letter = letters[at]
        if SORTS[letter] & sort:
            if letter == c"/" and at + 1 < length and letters[at + 1] == c".":
                return -1
            at += 1
        elif letter == c"%" and is_plain_escape(letters, at, length):
            at += 3
        elif letter == c"?":  # in a query it is found above
            sort = IN_QUERY
            at += 1
            query = at
        elif letter == c"#":
            break
        else:
            return -1
    return -1 if at == query else at


cdef Py_ssize_t end_of_host(const unsigned char *letters, Py_ssize_t start, Py_ssize_t length) noexcept nogil:
    """Where a host and its port end that are canonical as they are; -1 if that is not certain, or if no path follows."""
    cdef Py_ssize_t at = start, label = start, dots = 0
    while at < length and letters[at] != c"/" and letters[at] != c":":
        if letters[at] == c".":
            if at == label:
                return -1
            dots += 1
            label = at + 1
        elif not SORTS[letters[at]] & IN_HOST or (at == label and letters[at] == c"-"):
            return -1
        elif letters[at] == c"x" and at + 4 <= length and memcmp(letters + at, b"xn--", 4) == 0:
            return -1
        at += 1
    if at == length or dots == 0 or at == label or at > LONGEST_HOST:
        return -1
    # What ends in a number is an address, and not a name.
    if letters[label] < c"a" and not is_address(letters, start, at):
        return -1
    return at if letters[at] == c"/" else end_of_port(letters, at, length, 443 if start == 8 else 80)


cdef bint is_address(const unsigned char *letters, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Whether this is an IPv4 address in its normal form: four numbers up to 255 without zeros before them."""
    cdef int parts = 0, number, digits
    while at < end:
        number = digits = 0
        while at < end and c"0" <= letters[at] <= c"9" and digits < 4:
            if digits == 1 and number == 0:
                return False
            number = number * 10 + letters[at] - c"0"
            digits += 1
            at += 1
        parts += 1
        if digits == 0 or number > 255 or (at < end and (letters[at] != c"." or at + 1 == end)):
            return False
        at += 1
    return parts == 4


cdef Py_ssize_t end_of_port(const unsigned char *letters, Py_ssize_t at, Py_ssize_t length, int usual) noexcept nogil:
    """Where the port ends that starts with the colon here; -1 if it is not in its normal form, or the usual one."""
    cdef int number = 0, digits = 0
    at += 1
    while at < length and c"0" <= letters[at] <= c"9" and digits < 6:
        number = number * 10 + letters[at] - c"0"
        digits += 1
        at += 1
        if number == 0:
            return -1
    if digits == 0 or at == length or letters[at] != c"/" or number > 65535 or number == usual:
        return -1
    return at


cdef Py_ssize_t end_of_relative(const unsigned char *letters, Py_ssize_t length) noexcept nogil:
    """Where a relative path ends; -1 if its first part may be a scheme or is not plain."""
    cdef Py_ssize_t at = 0
    if letters[0] == c".":
        return -1
    while at < length and SORTS[letters[at]] & IN_NAME:
        at += 1
    if at == 0 or (at < length and letters[at] != c"/" and letters[at] != c"?" and letters[at] != c"#"):
        return -1
    return end_of_path(letters, at, length)


cdef bint is_plain_escape(const unsigned char *letters, Py_ssize_t at, Py_ssize_t length) noexcept nogil:
    """Whether an escape is in its normal form: in upper case, and of a character that must be escaped."""
    cdef unsigned char high, low
    if at + 2 >= length:
        return False
    high, low = letters[at + 1], letters[at + 2]
    if not (c"0" <= low <= c"9" or c"A" <= low <= c"F"):
        return False
    if high == c"0" or high == c"1" or high == c"8" or high == c"9" or c"A" <= high <= c"F":
        return True
    if high == c"2":
        return low != c"D" and low != c"E"
    if high == c"3":
        return low >= c"A"
    if high == c"4" or high == c"6":
        return low == c"0"
    if high == c"5":
        return c"B" <= low <= c"E"
    return high == c"7" and (c"B" <= low <= c"D" or low == c"F")
