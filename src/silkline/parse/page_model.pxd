cimport cython
from silkline.parse.decision_trees cimport DecisionTrees
from silkline.parse.letters cimport words
from silkline.parse.outline cimport Group

cdef dict _TOKENS, _OF_TAGS, _CLASSES
cdef DecisionTrees _first, _second
cdef double _SURELY_NOT, _SURELY, _SMALL

@cython.locals(weight=double)
cpdef double weigh(str tag, str names, object element)

@cython.locals(known=object, weight=double)
cdef double _weight_of_classes(str names)

@cython.locals(first=double, leaf=Group, small=double, body=Group)
cpdef list likelihoods(list groups, object described)
