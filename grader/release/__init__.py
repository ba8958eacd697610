"""Writes folders to give away: the student's bundle, its texts and recordings, a private course.

This room decides which files a bundle may hold. It writes a folder completely or not at all.
"""
