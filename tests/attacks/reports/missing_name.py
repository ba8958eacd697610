# Tries: asks for a name that is not there and is HTML, so that the hint shows it.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    raise NameError("x", name="<script>alert(1)</script>\x1b[2J" * 10_000)
