"""Proxies: the functions and modules that a test calls to run student code in another process.

This room knows contracts, sessions and the wire. It sends calls and checks their results. It also
copies a reference's weights into a student's module. It loads no reference and awards no points.

In a test, ``student.f(x)`` calls a proxy. `remote` defines the proxies of functions and modules.
`calls` makes a single call: it sends a test's arguments, and returns plain tensors that satisfy the
contract. `facts` calls an answer often, to find out how its result depends on its input.

``adopt(theirs, ours)`` gives a student's module the reference's weights, in these steps:

1. `adoption` asks `models` for all ways to match the student's parameters with the reference's
   weights. It tries these ways on an input, and writes the weights.
2. `models` lists these ways. It matches the layers that `trees` finds in the student's module. A
   reference without layers is matched as a whole.
3. `blocks` matches a block: its norms, which `norms` finds, and its parts with matrices, which
   `parts` finds.
4. `matching` matches a single part, such as an attention. It sorts the parameters into `groups`,
   and reads each group in one of the `layouts`.

The classes of `slots` describe a match. `names` finds out what the name of a parameter means.
"""
