"""Writes folders for others: the student's bundle, its texts and recordings, a private course.

This room decides which files a bundle may contain. If an error occurs, it writes no folder.
"""
