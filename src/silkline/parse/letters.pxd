cimport cython


@cython.locals(start=Py_ssize_t, end=Py_ssize_t)
cpdef Py_ssize_t stripped_length(str text)

@cython.locals(at=Py_ssize_t, size=Py_ssize_t, start=Py_ssize_t, last_capital=Py_ssize_t)
cpdef list words(str names)
