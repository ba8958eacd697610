"""Tools for authors of a course: an audit of the course's tests, and a made-up class for practice.

This room reads the whole course, including the solutions. Therefore students' bundles leave this
room out. It grades no students.
"""
