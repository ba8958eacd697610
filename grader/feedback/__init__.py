"""What people read of a verdict: sentences, differences in words, pictures, a terminal's signs.

It turns what is known into text and shapes. It decides no point, and runs nothing of a student's.
"""
