"""Folders to give away: the student's bundle, its texts and recordings, a private course.

It knows what may leave the house, and writes it whole or not at all.
"""
