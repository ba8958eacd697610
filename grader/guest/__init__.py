"""The engine's code in a student's process: locks it down, loads the submission, serves calls.

It imports `wire` and no other room. It holds no seed, reference, test or points. Its reports about
a submission are evidence, not proof. Only ``python -I -m grader.guest.warm`` and
``python -I -m grader.guest.work`` start it, and only `unsandboxed` imports it; a test checks that.

The trust boundary is three folders: `wire`, `guest` and `sandbox`, which trusts no reply from here.
After `wire`, read this folder in the following order:

1. `warm`: the process that forks jails, and the first steps of each jail.
2. `lockdown`: the layers of a jail, and the filter of system calls.
3. `interpreter`: the parts of Python and of torch's C module that a jail cannot use.
4. `server`: answers requests. `loader` makes definitions from the submission's text.
5. `operations`, `trace`: forbid operations, compute their costs, record the operations of a call.
   `operands`: names the tensors in a failing line, with their shapes.
6. `preload`: imports torch in advance. `work`, `cleanup`: the worker, which isolates nothing.
"""
