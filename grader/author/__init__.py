"""Tools for authors of a course: audits of its tests and known mistakes, and an invented class.

`audit` tells the story of an audit. `trials` runs tests on answers, `judgements` turns the results
into `findings`, and `parts`, `wording`, `examples` and `rules` check an exercise's other parts.
`mutants` come from `spots`; `counterexamples` show where a living mutant differs, and `suggestions`
make it a known mistake. `machines` and `watch` repeat an audit.

This room reads the whole course, including the solutions. Therefore a student's bundle does not
contain it. It gives no grades.
"""
