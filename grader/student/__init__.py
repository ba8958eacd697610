"""The student's desk: checks once, at each save or in a notebook; hints, progress, resets, the zip.

`lesson` is shared by all screens. The room knows public checks, and the recordings or solutions of
its course. All of it goes to every student.
"""
