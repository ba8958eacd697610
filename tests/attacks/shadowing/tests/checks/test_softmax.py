def test_softmax_rows_fits_any_matrix():
    pass
