"""What students type: checks at each save, once, or in a notebook; hints, progress, reset, the zip.

It knows public checks, and recordings or solutions, whichever the course comes with: whatever
stands here goes to every student.
"""
