"""What runs beside a student's code: it locks a process down, loads answers, and answers calls.

It knows the wire and nothing else of the kit: no seed, no reference, no test, no point. What it
says of a submission is evidence, never proof. Only ``python -I -m grader.guest.warm`` and
``python -I -m grader.guest.work`` start it, and only `unsandboxed` imports it; a test keeps that.

The trust boundary is three folders. An auditor who has read `wire` reads here, in this order:

1. `warm`: the process that jails are forked from, and what each does first.
2. `lockdown`: the layers that a jail puts on, and the filter of system calls.
3. `interpreter`: what Python and torch's C module refuse in a jail from then on.
4. `server`: a request comes, and an answer goes. `loader` makes definitions from the text for it.
5. `operations`, `trace`: what is taken out of torch, what an operation costs, what a call did.
   `operands`: which tensors stand in a line that failed, which it reads from a student's frame.
6. `preload`, `cleanup`, `work`: what is loaded beforehand; the worker, which has no wall.

Then `sandbox`, which believes none of it.
"""
