# Tries: raises an exception that repaints the terminal, its title and its clipboard.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    raise ValueError(
        "\x1b[2J\x1b[H\x1b[32m60 of 60\x1b[0m \x1b]0;title\x07 \x1b]52;c;cm0=\x07 "
        "\x9b31m \x08\x08\r"
    )
