"""Tools for authors of a course: audits of its tests and known mistakes, and an invented class.

This room reads the whole course, including the solutions. Therefore a student's bundle does not
contain it. It gives no grades.
"""
