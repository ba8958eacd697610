"""Grades many submissions into a gradebook: in this process, in others or on other machines.

This room schedules submissions, and shows the progress. `grading` grades each of them.
"""
