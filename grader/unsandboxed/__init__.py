"""The channels without a wall: a student's own worker, and our own definitions.

These channels do not isolate student code, and a grade made with them says so (`--device cuda`
needs them). This room knows the guest, the wire and the sandbox's channels. It must not know any
test, reference or point.

An auditor reads, after `sandbox`:

1. `worker`: a process that serves one submission after another, for notebooks and for machines
   without jails. Its other end is `grader.guest.work`.
2. `in_process`: the only channel to definitions of this process: our own, and the text of a student
   who watches it run.
3. `forked`: a fork of this process for known mistakes, which may never end.
4. `text`: finds the statements that a check would load from a text, without running them.
"""
