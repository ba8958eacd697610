"""A student's code at work, to look at: shapes along the way, a debugger, a test's own account.

It runs tests as a grading does, in this process or in a jail, and never gives a point.
"""
