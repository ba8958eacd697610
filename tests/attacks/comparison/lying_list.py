# Tries: answers a list whose __eq__ says True and whose iteration never ends.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
class Liar(list):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = None
    dtype = property(lambda self: "float32")
    shape = property(lambda self: (5,))

    def __iter__(self):
        while True:
            yield 0.0


def softmax_naive(scores):
    return Liar([0.0])
