"""What becomes of grades: the gradebook, corrections, comparisons of two runs, names taken out.

It knows rows and nothing of tests: it neither runs nor judges anything.
"""
