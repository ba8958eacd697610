"""After grading: why a test failed, whose grade changed, what a person corrects, who is forgotten.

Works on a gradebook, and grades nobody; `told` is what an instructor reads of it.
"""
