"""The commands of a student: checks, hints, progress, resets, and the zip to submit.

A command, each save, or a notebook's cell starts a check. All screens share the class `Lesson`. The
commands use only files that the student has: the public checks, and the recordings or solutions in
the course's folder.
"""
