"""One submission becomes one grade: tests meet answers and references, mistakes get their names.

It knows the course, the proxies and what is known of mistakes. It must not know where submissions
came from, nor where grades go.
"""
