"""What a test calls in place of an answer: functions and modules on the other side of the wall.

It knows contracts, sessions and the wire: it sends a call, checks what comes back, and gives a
student's module the reference's weights. It must not know references, points or verdicts.
"""
