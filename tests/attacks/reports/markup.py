# Tries: raises an exception with Rich markup, links and a broken tag.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    raise ValueError("[bold green]passed[/] [link=file:///etc/passwd]more[/link] [/no] [@click]")
