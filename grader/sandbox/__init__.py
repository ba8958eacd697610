"""The trusted side: starts and limits the processes of submissions, and sends them requests.

This room checks every reply and trusts none. It knows no test, reference or points. It imports only
`wire` and `records`; a test checks the imports.

The trust boundary is three folders: `wire`, `guest` and this room. Read this room last, in this
order:

1. `jails`: starts the warm process, has it fork jails, and finds out why a jail ended. It also
   decides whether the layers of this machine are enough for grading.
2. `budget`: the time limits of a submission, and the time that is left.
3. `session`: sends the calls of a submission's tests, and starts a new process when one is lost.
   It also defines the interface of all channels.
"""
