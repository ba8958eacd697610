"""Writes an exercise from a reference: everything that can be derived from it.

The modules, in the order in which they work:

- `source` reads the reference's text, and `example` the author's example call;
- `annotations` derives what the signature does not say;
- `kinds` knows how each kind of tensor or array is drawn, shown and put into words;
- `trial` runs the reference, `inputs` finds inputs that it takes, and `facts` what then holds;
- `calls` and `ladder` write tests, `stub` the statement, and `library` the known mistakes;
- `pieces` and `merging` add these texts to the files of a unit, laid out by `layout`;
- `draft` audits a copy of the course before anything is written, and `words` reports;
- `edges` finds numbers, such as zero and infinity, at which mutants differ that the audit left.
"""
