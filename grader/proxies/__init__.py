"""What a test calls in place of an answer: functions and modules on the other side of the wall.

It knows contracts, sessions and the wire: it sends a call, checks what comes back, and gives a
student's module the weights that a test hands it. It loads no reference, and knows no points.

What an auditor wants to know of it is how an answer becomes something that a test compares:

1. `calls`: one call, from a test's arguments to plain tensors that the contract has accepted.
2. `remote`: the functions and modules that a test sees, which make such calls.
3. `adoption`: a reference's weights given to a student's module, whatever it is made of. Which of
   its weights are which: `matching`, by names and shapes; `nesting` for blocks and models, whose
   parts it finds with `trees` and `norms`.
"""
