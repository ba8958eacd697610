"""Plain data and helpers that all rooms share: grades, gradebook rows, exceptions, files.

This room imports neither torch nor another room, and opens no course. Of a bundle, it knows only
the place of the list of files (`bundles`).
"""
