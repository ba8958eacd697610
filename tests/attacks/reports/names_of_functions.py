# Tries: names what it calls with letters that look like others, and shows them in a traceback.
# Worked in: -
# Deserves: nothing
def сausal_mask(num_tokens):  # the first letter is Cyrillic
    """<b>‮</b>"""
    return 1 / 0


def causal_mask(num_tokens):
    return сausal_mask(num_tokens)
