"""Questions about a student's own right answer, whose replies were found by running it.

`study` runs an answer as it is, with probes, and with small changes, on `inputs`; `running` does
this in a jail. `outcomes` says what a change does, and `words` how behaviour differs. Each of these
files makes one kind of question from what the study found: `shapes`, `changes` (what happens if
something is left out or changed), `lines` (which change has an effect) and `traces` (which value
changes in a certain part). `choice` picks the questions to ask, and `exam` those of an oral exam on
a whole submission. `texts` puts changes into an answer, and writes lines and values.

The answer runs in a jail, as in a grading. A reference, a known mistake, a hidden test and another
student's answer are in no question: inputs come from public checks. No question changes a grade.
"""
