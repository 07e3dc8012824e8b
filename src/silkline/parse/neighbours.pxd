cimport cython
from silkline.parse.outline cimport Group


@cython.locals(
    group=Group, up=Group, outer=Group, section=Group, repeated=Group, own=double, one=double, total=double,
    at=Py_ssize_t)
cpdef list neighbours(list groups, list leaves, list likely, list wanted=*)

@cython.locals(body=Group, group=Group, up=Group, section=Group, repeated=Group, count=Py_ssize_t)
cdef list _inside(list groups, double total)

@cython.locals(group=Group, seen=double, at=Py_ssize_t)
cdef list _better(list leaves, list likely, double total)

@cython.locals(best=double, one=double)
cdef list _running_best(list likely)
