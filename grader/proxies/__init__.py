"""What a test calls in place of an answer: functions and modules on the other side of the wall.

It knows contracts, sessions and the wire: it sends a call, checks what comes back, and gives a
student's module the weights that a test hands it. It loads no reference, and knows no points.

What an auditor wants to know of it is how an answer becomes something that a test compares:

1. `calls`: one call, from a test's arguments to plain tensors that the contract has accepted.
2. `remote`: the functions and modules that a test sees, which make such calls.
3. `adoption`: a reference's weights given to a student's module, whatever it is made of.
4. `nesting`: which of its weights are which, level by level, and in which order this is tried: a
   model in `models`, a block in `blocks` (its `norms`, and its `parts` that hold matrices), one
   part in `matching`. What all of these find, `slots` describes.
5. What these read: a tree of modules (`trees`), a matrix in pieces (`groups`), rows of a matrix
   (`layouts`), words and numbers in a name (`names`).
6. `facts`: what an answer's result does when its input moves.
"""
