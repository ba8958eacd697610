"""Turns results into text and pictures: verdicts, sentences, differences in words, terminal output.

This room awards no points and runs no student code.
"""
