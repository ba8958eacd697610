# Tries: plants a product that does not fit, and repeats it where three exercises should stand.
# Worked in: -
# Deserves: nothing
def attention_scores(inputs):
    return inputs @ inputs


def attention_weights(inputs):
    return inputs @ inputs


def simple_self_attention(inputs):
    return inputs @ inputs
