"""What runs beside a student's code: it locks a process down, loads answers, and answers calls.

It knows the wire and nothing else of the kit: no seed, no reference, no test, no point. What it
says of a submission is evidence, never proof.
"""
