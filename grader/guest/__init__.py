"""The kit's code in a student's process: locks it down, loads the submission, serves calls.

This room imports `wire` and no other room. It has no seed, reference, test or points. Student code
in the same process could forge this room's replies. Only ``python -I -m grader.guest.warm`` and
``python -I -m grader.guest.work`` start this room's code. Only the room `unsandboxed` imports it; a
test checks the imports.

The trust boundary is three folders: `wire`, `guest` and `sandbox`. `sandbox` trusts no reply from
this folder. After `wire`, read this folder in the following order:

1. `warm`: the process that forks jails, and the first steps of each jail.
2. `lockdown`: the layers of a jail. `syscalls`: the kernel's filter of its system calls.
3. `interpreter`: the parts of Python and of torch's C module that a jail cannot use.
4. `server`: answers requests. `loader`: makes definitions from the submission's text.
5. `operations`, `trace`: forbid operations, compute their costs, record the operations of a call.
   `operands`: finds the tensors in a failing expression, with their names and shapes.
6. `preload`: imports torch in advance. `work`, `cleanup`: the worker, which does not isolate a
   submission.
"""
