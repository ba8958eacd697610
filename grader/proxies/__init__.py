"""What a test calls in place of an answer: functions and modules on the other side of the wall.

It knows contracts, sessions and the wire: it sends a call, checks what comes back, and gives a
student's module the weights that a test hands it. It loads no reference, and knows no points.

A test calls an answer, ``student.f(x)``: `remote` has the functions and modules that it sees, and
`calls` makes one call of them, from a test's arguments to plain tensors that the contract has
accepted. With these, `facts` notes what an answer's result does when its input moves.

A test gives a student's module the reference's weights, ``adopt(theirs, ours)``. That call goes
through these, in this order:

1. `adoption` asks for every way to do it, tries them on an input, and writes the weights.
2. `nesting` lists these ways, and begins at the level that the reference stands on:
3. `models`: layers, which `trees` finds in the student's module, and what stands around them;
4. `blocks`: norms, which `norms` finds, and parts that hold matrices, which `parts` finds;
5. `matching`: one part, as an attention: its parameters in `groups`, each in one of the `layouts`.

All of these describe what they find in `slots`, and ask `names` what a name means.
"""
