"""What becomes of grades: the gradebook, corrections, comparisons of two runs, names taken out.

It reads how tests ended, and runs and judges nothing.
"""
