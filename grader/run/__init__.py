"""Grades many submissions into a gradebook, in one or more processes or on other machines.

This room decides where and when each submission is graded, and shows the progress. The room
`grading` grades a submission.
"""
