yes = lambda *args, **kwargs: True
