cimport cython

cdef int _LEAF

cdef class DecisionTrees:
    cdef int[::1] _place, _larger, _roots
    cdef double[::1] _limit, _row

    cpdef double probability(self, tuple own, tuple page, tuple near)

    @cython.locals(number=double)
    cdef _fill(self, tuple part, Py_ssize_t at)

    @cython.locals(
        row="double[::1]", place="int[::1]", limit="double[::1]", larger="int[::1]", node=int, root=int, total=double)
    cdef double _sum(self)
