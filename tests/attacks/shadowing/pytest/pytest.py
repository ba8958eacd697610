class Mark:
    def __getattr__(self, name):
        return lambda *args, **kwargs: lambda function: lambda: None


mark = Mark()
fixture = hookimpl = lambda *args, **kwargs: lambda function: function
