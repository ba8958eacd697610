# Tries: answers a float that equals every number, and is 0 away from each.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
class Liar(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __ne__ = __lt__ = __gt__ = lambda self, other: False
    __sub__ = __rsub__ = __abs__ = lambda self, *other: 0.0
    __hash__ = None


def context_vector(inputs, query_index):
    return Liar(1.0)
