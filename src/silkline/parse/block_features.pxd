cimport cython
from silkline.parse.letters cimport words
from silkline.parse.outline cimport Group


cpdef list signs(str tag, object element)

@cython.locals(
    group=Group, up=Group, body=Group, head=Group, above=Group, text=Py_ssize_t, count=Py_ssize_t, total=double,
    weight=double, names=double, least=double, most=double, share=double, largest=double, paragraphs=Py_ssize_t)
cpdef describe(list groups, str url, object tags)

@cython.locals(
    group=Group, up=Group, outer=Group, own=double, count=double, beside=double, text=double,
    names=double, least=double, most=double, share=double, mean=double, link=double)
cdef list _rows(list leaves, list inherited, double total, Py_ssize_t first, object tags)

@cython.locals(group=Group, second=Group)
cdef Group _headline(list groups)
