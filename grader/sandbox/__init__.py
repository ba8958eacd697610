"""The trusted side of the wall: it starts, limits and hears the processes of submissions.

It knows the wire, and believes nothing that comes over it. It must not know what is asked there:
no test, no reference, no point.
"""
