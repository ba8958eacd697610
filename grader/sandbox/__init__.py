"""The trusted side of the wall: it starts, limits and hears the processes of submissions.

It knows the wire, and believes nothing that comes over it. It must not know what is asked there:
no test, no reference, no point. It imports `wire` and `records`; a test keeps that.

The last of the three folders of the trust boundary, after `wire` and `guest`. In this order:

1. `jails`: how the warm process is started and told to fork, all the ways to lose a jail, and which
   layers are enough to grade with.
2. `budget`: a submission's time: its limits, what counts against them, and what is left.
3. `session`: one submission through as many processes as it takes, and what a loss costs. The kinds
   of channels stand here too.
"""
