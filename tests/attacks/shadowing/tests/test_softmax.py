def test_softmax_rows_agrees_with_the_reference():
    pass
