"""Plain data that all rooms share: grades, gradebook rows, exceptions, files.

It imports neither torch nor another room, and opens no course. It knows only where a bundle keeps
its list of files (`bundles`).
"""
