"""Channels to code that runs outside a jail: in a worker, in a fork, or in this very process.

These channels do not isolate student code. A grade from such a channel, as with `--device cuda`,
says so. This room knows the guest, the wire and the sandbox's channels. It must not know any test,
reference or point.

To audit the trust boundary, read these modules after `sandbox`:

1. `worker`: a process that serves one submission after another, for notebooks and for machines
   without jails. `grader.guest.work` is the code of that process.
2. `in_process`: the only channel to definitions in this process. The definitions are the kit's own,
   or those of a student who watches their own code run.
3. `forked`: a fork of this process for known mistakes, which may never end.
4. `text`: finds the statements that a check would load from a text, without running them.
"""
