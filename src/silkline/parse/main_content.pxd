cimport cython
from silkline.parse.outline cimport Group


@cython.locals(
    group=Group, index=Py_ssize_t, likely=double, expected=double, right=double, taken=double,
    best=double, quality=double, count=Py_ssize_t, at=Py_ssize_t)
cpdef choose(object body, str url, object size)

@cython.locals(group=Group, inside=list)
cdef _drop_menus(list groups, set kept)

@cython.locals(group=Group, headline=Group, around=Group, sizes=list, last=Py_ssize_t, linked=bint)
cdef _fill(list groups, list leaves, set kept)

@cython.locals(up=Group)
cdef bint _heads_content(Group heading, list sizes, bint linked)

@cython.locals(around=Group)
cdef bint _is_plain(Group group, Group body)

@cython.locals(group=Group, up=Group, needed=list, groups=list)
cpdef remove_rest(object choice)

@cython.locals(group=Group, up=Group, holder=list, repeated=dict, sums=list, inside=Py_ssize_t)
cdef str _sort_of(list groups, set kept)
