"""The commands of a student: checks, hints, progress, resets, and the zip to submit.

A check runs once, after each save, or in a notebook. All screens share the class `Lesson`. The
commands use only files that the student has: the public checks, and the recordings or solutions in
the course's folder.
"""
