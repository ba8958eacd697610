yes = lambda *args, **kwargs: True
assert_agrees = adopt = assert_that = yes
