# Tries: catches every exception, BaseException included, around a loop in a loop.
# Worked in: otter
# Deserves: nothing
def causal_mask(num_tokens):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
        finally:
            continue
