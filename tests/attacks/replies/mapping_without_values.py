# Tries: answers a dictionary of tensors that have no values to compare.
# Worked in: -
# Deserves: nothing
def v1_weights_from_v2(state):
    return {n.removesuffix(".weight"): w.T.to("meta") for n, w in state.items()}
