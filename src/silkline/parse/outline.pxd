cimport cython
from silkline.parse.letters cimport stripped_length


cdef class Group:
    cdef readonly str tag
    cdef readonly double weight
    cdef readonly Group up
    cdef readonly Py_ssize_t index, start
    cdef readonly list elements
    cdef public bint closed
    cdef public Py_ssize_t last, own, own_link, text, link, prose, blocks


cdef class Outline:
    cdef readonly object body
    cdef readonly list groups
    cdef object _weigh, _texts
    cdef dict _homes
    cdef list _in, _links_in, _homes_of
    cdef double _small
    cdef Py_ssize_t _looks, _openings, _seen

    cpdef bint has_text(self, object element)

    @cython.locals(homes=dict, home=tuple, group=Group, linked=bint, size=Py_ssize_t, data=str)
    cdef _walk(self)

    @cython.locals(
        homes=dict, inline=frozenset, chain=list, home=tuple, found=tuple, inside=dict, by_tag=dict, group=Group,
        around=Py_ssize_t, linked=bint, tag=str, below=str
    )
    cdef tuple _place(self, object element)

    @cython.locals(groups=list, group=Group, weight=double, size=Py_ssize_t, prose=bint)
    cdef Group _new_group(self, object element, str tag, object names, Group up)

    @cython.locals(size=Py_ssize_t, seen=Py_ssize_t)
    cdef _skip(self, object element, Group group)
    cdef _open(self, Group group)

    @cython.locals(group=Group, up=Group, own=Py_ssize_t, count=Py_ssize_t, text=Py_ssize_t)
    cdef _add_up(self)


cpdef bint is_link(object anchor)
