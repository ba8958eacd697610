"""Plain data and helpers that all rooms share: grades, gradebook rows, exceptions, files.

This room imports neither torch nor another room, and opens no course. In a bundle, it reads and
writes only the list of files (`bundles`).
"""
