"""Tools for authors of a course: an audit of the course's tests, and an invented class to practise.

This room reads the whole course, including the solutions. Therefore a student's bundle does not
contain it. It grades no students.
"""
