"""Proxies: the functions and modules that a test calls, which run behind the wall.

This room knows contracts, sessions and the wire. It sends a call, checks the result, and copies a
reference's weights into a student's module. It loads no reference and awards no points.

For a call, ``student.f(x)``, `remote` has the functions and modules that a test sees. `calls` makes
one call, from a test's arguments to plain tensors that satisfy the contract. With these, `facts`
notes how an answer's result depends on its input.

``adopt(theirs, ours)`` gives a student's module the reference's weights, through these modules:

1. `adoption` asks for all ways to match the weights, tries them on an input, and writes the
   weights.
2. `models` lists the ways. It matches the layers that `trees` finds in the student's module; a
   reference without layers goes directly to
3. `blocks`: norms, which `norms` finds, and parts with matrices, which `parts` finds;
4. `matching`: a single part such as an attention: its parameters in `groups`, each in one of the
   `layouts`.

All of these describe their results with `slots`, and use `names` for the meaning of a name.
"""
