# Tries: uses the kit itself: loads the course, opens its oracle, and calls the reference.
# Worked in: -
# Deserves: nothing
from pathlib import Path


def causal_mask(num_tokens):
    import grader
    from grader.course.course import load_course
    from grader.course.course import find_course
    from grader.course.references import open_oracle
    from grader.course.tensors import Make

    course = load_course(find_course(Path(grader.__file__).parents[1] / "exercises"))
    seed = (course.solutions / "seed").read_text().strip()
    reference = open_oracle(course).reference(Make(seed, "causal_mask", "x"))
    return reference.causal_mask(num_tokens)
