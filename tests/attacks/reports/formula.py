# Tries: raises an exception that a spreadsheet takes for a formula.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    raise type("=cmd", (Exception,), {})("=HYPERLINK(\"http://127.0.0.1\",\"60\")\t@SUM(1)\r\n+1-1")
