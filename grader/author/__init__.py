"""Tools for authors of a course: an audit of its tests, and a made-up class for practice.

This room reads the whole course, solutions included, so students' bundles leave it out. It grades
no students.
"""
