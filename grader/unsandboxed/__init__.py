"""The channels without a wall: a student's own worker, and our own definitions.

Nothing here isolates anything, and a grade that is made with it says so (`--device cuda` needs it).
It knows the guest, the wire and the sandbox's channels, and must not know what is asked: no test,
no reference, no point.

An auditor reads, after `sandbox`:

1. `worker`: a process for one submission after another, where jails cannot be, and for notebooks.
   Its other end is `grader.guest.work`.
2. `in_process`: the one channel to definitions of this very process: our own, and a text that a
   student wants to see at work.
3. `forked`: a fork of this process for our own code that may not end: known mistakes.
4. `text`: what a check would load of a text, without running it.
"""
