"""The trusted side of the wall: starts and limits the processes of submissions, and asks them.

It checks every reply and trusts none. It knows no test, reference or points. It imports `wire` and
`records`; a test checks that.

It is the last of the three folders of the trust boundary, after `wire` and `guest`. Read it in this
order:

1. `jails`: starts the warm process, has it fork jails, and explains how a jail was lost. It also
   decides whether the layers of this machine are enough for grading.
2. `budget`: the time limits of a submission, and the time that is left.
3. `session`: a submission's calls, in as many processes as it needs; the kinds of channels.
"""
