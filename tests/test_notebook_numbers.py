"""The references reproduce every figure that the five notebooks print.

The figures are facts from `seeds/000` to `004` (the number stands in each test's name); the code is
ours. They depend on torch's generator on x86 Linux, where torch 2.13 draws what the notebooks drew.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grader.course.course import load_course
from grader.course.references import load_solutions
from tests.support.places import REAL

COURSE = load_course(REAL)


def reference(unit: str, name: str) -> Any:
    """One reference, loaded as the engine loads it."""
    return getattr(load_solutions(COURSE)[unit], name)


def assert_printed(actual: Tensor, printed: list[Any]) -> None:
    """Four printed decimals are right to half of the last one; leave a hair for float32."""
    figures = torch.tensor(printed, dtype=actual.dtype)
    torch.testing.assert_close(actual.detach(), figures, rtol=0, atol=5e-5 + 2e-6)


def matrix(printed: str) -> list[list[float]]:
    """Read a matrix as the notebooks print it: one row a line."""
    return [[float(figure) for figure in line.split()] for line in printed.strip().splitlines()]


# --- what the notebooks work on ------------------------------------------------------------------

WORDS = ["Your", "journey", "starts", "with", "one", "step"]
JOURNEY = WORDS.index("journey")


@pytest.fixture
def embeddings() -> Tensor:
    """The six three-dimensional embeddings of 001 and 004."""
    return torch.tensor(
        [
            [0.43, 0.15, 0.89],
            [0.55, 0.87, 0.66],
            [0.57, 0.85, 0.64],
            [0.22, 0.58, 0.33],
            [0.77, 0.25, 0.10],
            [0.05, 0.80, 0.55],
        ]
    )


@pytest.fixture
def batch(embeddings: Tensor) -> Tensor:
    """The same sentence twice, as in 004."""
    return torch.stack((embeddings, embeddings))


@pytest.fixture
def digits() -> Tensor:
    """The three tokens of 000 and 002, drawn under seed 42."""
    torch.manual_seed(42)
    return torch.randint(0, 10, (3, 2)).float()


def trainable_matrices(d_in: int, d_out: int) -> list[Tensor]:
    """W_query, W_key and W_value, drawn as 001 and 004 draw them: uniform, seed 123."""
    torch.manual_seed(123)
    return [torch.rand(d_in, d_out) for _ in range(3)]


# --- 000 and 002: averages, softmax, one causal head ---------------------------------------------


def test_000_digits_are_those_printed(digits: Tensor) -> None:
    assert digits.tolist() == [[2, 7], [6, 4], [6, 5]]


def test_000_sums_of_the_past(digits: Tensor) -> None:
    prefix_sum_matrix = reference("averaging", "prefix_sum_matrix")
    assert prefix_sum_matrix(3).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert_printed(prefix_sum_matrix(3) @ digits, [[2, 7], [8, 11], [14, 16]])


def test_000_and_002_matrix_of_means(digits: Tensor) -> None:
    running_mean_matrix = reference("averaging", "running_mean_matrix")
    assert_printed(running_mean_matrix(3), [[1, 0, 0], [0.5, 0.5, 0], [0.3333, 0.3333, 0.3333]])
    assert_printed(running_mean_matrix(3) @ digits, [[2, 7], [4, 5.5], [4.6667, 5.3333]])


RUNNING_MEANS = ["running_mean_loop", "running_mean_matmul", "running_mean_softmax"]


@pytest.mark.parametrize("name", RUNNING_MEANS)
def test_000_and_002_running_means(name: str, digits: Tensor) -> None:
    running_mean = reference("averaging", name)
    assert_printed(running_mean(digits[None]), [[[2, 7], [4, 5.5], [4.6667, 5.3333]]])


@pytest.mark.parametrize("seed", [42, 1337], ids=["000", "002"])
def test_000_and_002_three_roads_to_the_mean_agree(seed: int) -> None:
    torch.manual_seed(seed)
    x = torch.randn(4, 8, 2)
    loop, matmul, softmax = (reference("averaging", name)(x) for name in RUNNING_MEANS)
    torch.testing.assert_close(matmul, loop)
    torch.testing.assert_close(softmax, loop)


# Printed by 000 under the heading "Softmax".
SOFTMAX_OF_THE_AVERAGES = matrix(
    """
    0.2797 0.1029 0.1029 0.1029 0.1029 0.1029 0.1029 0.1029
    0.1773 0.1773 0.1076 0.1076 0.1076 0.1076 0.1076 0.1076
    0.1519 0.1519 0.1519 0.1089 0.1089 0.1089 0.1089 0.1089
    0.1405 0.1405 0.1405 0.1405 0.1095 0.1095 0.1095 0.1095
    0.1341 0.1341 0.1341 0.1341 0.1341 0.1098 0.1098 0.1098
    0.1300 0.1300 0.1300 0.1300 0.1300 0.1300 0.1100 0.1100
    0.1271 0.1271 0.1271 0.1271 0.1271 0.1271 0.1271 0.1102
    0.1250 0.1250 0.1250 0.1250 0.1250 0.1250 0.1250 0.1250
    """
)


def test_000_erratum_the_printed_softmax_is_that_of_the_averaged_matrix() -> None:
    """Zeros are scores too: what 000 prints there sees the future, what it means does not."""
    averages = reference("averaging", "running_mean_matrix")(8)
    printed = reference("softmax", "softmax_rows")(averages)
    assert_printed(printed, SOFTMAX_OF_THE_AVERAGES)

    causal_mask = reference("causal_attention", "causal_mask")
    masked_softmax = reference("causal_attention", "masked_softmax")
    meant = masked_softmax(torch.zeros(8, 8), causal_mask(8))
    torch.testing.assert_close(meant, averages)
    assert (meant - printed).abs().max() > 0.7


def test_002_softmax_of_five_scores() -> None:
    scores = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
    printed = [0.1925, 0.1426, 0.2351, 0.1426, 0.2872]
    assert_printed(reference("softmax", "softmax_naive")(scores), printed)
    assert_printed(reference("softmax", "softmax_rows")(scores[None]), [printed])
    assert_printed(reference("softmax", "softmax_stable")(scores), printed)


class OneHotValues(nn.Module):
    """Values that are the rows of an identity: a context vector then *is* its row of weights."""

    def forward(self, x: Tensor) -> Tensor:
        batch, time, _d_in = x.shape
        return torch.eye(time).expand(batch, time, time)


def test_000_weights_of_the_unscaled_causal_head() -> None:
    torch.manual_seed(42)
    x = torch.randn(4, 8, 32)
    head = reference("self_attention", "CausalHead")(32, 16, scaled=False)
    assert head(x).shape == (4, 8, 16)

    head.value = OneHotValues()
    assert_printed(
        head(x)[0],
        matrix(
            """
            1.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
            0.1905 0.8095 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
            0.3742 0.0568 0.5690 0.0000 0.0000 0.0000 0.0000 0.0000
            0.1288 0.3380 0.1376 0.3956 0.0000 0.0000 0.0000 0.0000
            0.4311 0.0841 0.0582 0.3049 0.1217 0.0000 0.0000 0.0000
            0.0537 0.3205 0.0694 0.2404 0.2568 0.0592 0.0000 0.0000
            0.3396 0.0149 0.5165 0.0180 0.0658 0.0080 0.0373 0.0000
            0.0165 0.0375 0.0144 0.1120 0.0332 0.4069 0.3136 0.0660
            """
        ),
    )


def test_002_erratum_variances_as_a_property() -> None:
    """002 prints variances of a lost generator state; what they show holds for any state."""
    head_size = 16
    torch.manual_seed(1337)
    queries = torch.randn(64, 32, head_size)
    keys = torch.randn(64, 32, head_size)

    scaled = reference("self_attention", "scaled_scores")(queries, keys)
    unscaled = queries @ keys.transpose(-2, -1)

    assert scaled.var().item() == pytest.approx(1, rel=0.1)
    assert unscaled.var().item() == pytest.approx(head_size, rel=0.1)


# --- 001 and 004: attention without weights ------------------------------------------------------

SCORES = matrix(
    """
    0.9995 0.9544 0.9422 0.4753 0.4576 0.6310
    0.9544 1.4950 1.4754 0.8434 0.7070 1.0865
    0.9422 1.4754 1.4570 0.8296 0.7154 1.0605
    0.4753 0.8434 0.8296 0.4937 0.3474 0.6565
    0.4576 0.7070 0.7154 0.3474 0.6654 0.2935
    0.6310 1.0865 1.0605 0.6565 0.2935 0.9450
    """
)
WEIGHTS = matrix(
    """
    0.2098 0.2006 0.1981 0.1242 0.1220 0.1452
    0.1385 0.2379 0.2333 0.1240 0.1082 0.1581
    0.1390 0.2369 0.2326 0.1242 0.1108 0.1565
    0.1435 0.2074 0.2046 0.1462 0.1263 0.1720
    0.1526 0.1958 0.1975 0.1367 0.1879 0.1295
    0.1385 0.2184 0.2128 0.1420 0.0988 0.1896
    """
)
CONTEXT = matrix(
    """
    0.4421 0.5931 0.5790
    0.4419 0.6515 0.5683
    0.4431 0.6496 0.5671
    0.4304 0.6298 0.5510
    0.4671 0.5910 0.5266
    0.4177 0.6503 0.5645
    """
)


@pytest.mark.parametrize("name", ["attention_scores_loop", "attention_scores"])
def test_001_and_004_scores(name: str, embeddings: Tensor) -> None:
    assert_printed(reference("simple_attention", name)(embeddings), SCORES)


def test_004_scores_of_journey(embeddings: Tensor) -> None:
    scores = reference("simple_attention", "attention_scores_for_query")(embeddings, JOURNEY)
    assert_printed(scores, [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])


def test_004_weights_of_journey_by_sum(embeddings: Tensor) -> None:
    scores = reference("simple_attention", "attention_scores_for_query")(embeddings, JOURNEY)
    weights = reference("softmax", "normalize_by_sum")(scores)
    assert_printed(weights, [0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656])


def test_004_weights_of_journey_by_softmax(embeddings: Tensor) -> None:
    scores = reference("simple_attention", "attention_scores_for_query")(embeddings, JOURNEY)
    weights = reference("softmax", "softmax_naive")(scores)
    assert_printed(weights, [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])


def test_001_and_004_weights(embeddings: Tensor) -> None:
    weights = reference("simple_attention", "attention_weights")(embeddings)
    assert_printed(weights, WEIGHTS)
    assert_printed(weights.sum(dim=-1), [1.0] * 6)


@pytest.mark.parametrize("name", ["softmax_rows", "softmax_stable"])
def test_001_and_004_weights_by_the_softmaxes_of_unit_2(name: str, embeddings: Tensor) -> None:
    scores = reference("simple_attention", "attention_scores")(embeddings)
    assert_printed(reference("softmax", name)(scores), WEIGHTS)


def test_001_and_004_context_vector_of_journey(embeddings: Tensor) -> None:
    context_vec = reference("simple_attention", "context_vector")(embeddings, JOURNEY)
    assert_printed(context_vec, [0.4419, 0.6515, 0.5683])


def test_001_and_004_all_context_vectors(embeddings: Tensor) -> None:
    assert_printed(reference("simple_attention", "simple_self_attention")(embeddings), CONTEXT)


# --- 001: trainable weights, d_out = 3 -----------------------------------------------------------


CONTEXT_OF_TRAINABLE_MATRICES = matrix(
    """
    0.6692 1.0276 1.1106
    0.6864 1.0577 1.1389
    0.6860 1.0570 1.1383
    0.6738 1.0361 1.1180
    0.6711 1.0307 1.1139
    0.6783 1.0441 1.1252
    """
)


def test_001_values_weights_and_context_with_trainable_matrices(embeddings: Tensor) -> None:
    matrices = trainable_matrices(3, 3)
    queries, keys, values = reference("self_attention", "project_qkv")(embeddings, *matrices)
    assert_printed(
        values,
        matrix(
            """
            0.4976 0.9655 0.7614
            0.9074 1.3518 1.5075
            0.8976 1.3391 1.4994
            0.5187 0.7319 0.8493
            0.4699 0.7336 0.9307
            0.6446 0.9045 0.9814
            """
        ),
    )

    attn_scores = reference("self_attention", "scaled_scores")(queries, keys)
    assert_printed(
        reference("softmax", "softmax_rows")(attn_scores),
        matrix(
            """
            0.1747 0.1866 0.1864 0.1446 0.1586 0.1491
            0.1862 0.2123 0.2117 0.1179 0.1450 0.1269
            0.1859 0.2118 0.2112 0.1184 0.1454 0.1273
            0.1798 0.1936 0.1932 0.1365 0.1542 0.1427
            0.1751 0.1895 0.1893 0.1418 0.1579 0.1465
            0.1837 0.2003 0.1998 0.1293 0.1501 0.1369
            """
        ),
    )

    attention = reference("self_attention", "scaled_dot_product_attention")
    assert_printed(attention(queries, keys, values), CONTEXT_OF_TRAINABLE_MATRICES)


def test_001_the_class_gives_the_same_context(embeddings: Tensor) -> None:
    torch.manual_seed(123)
    attention = reference("self_attention", "SelfAttention_v1")(3, 3)
    assert_printed(attention(embeddings), CONTEXT_OF_TRAINABLE_MATRICES)


def test_001_context_vector_grows_value_by_value(embeddings: Tensor) -> None:
    """What 001 calls z_2 is the context of `inputs[2]`, which is the third token, "starts"."""
    matrices = trainable_matrices(3, 3)
    queries, keys, values = reference("self_attention", "project_qkv")(embeddings, *matrices)
    attn_scores = reference("self_attention", "scaled_scores")(queries, keys)
    attn_weights = reference("softmax", "softmax_rows")(attn_scores)

    starts = WORDS.index("starts")
    partial_sums = (attn_weights[starts, :, None] * values).cumsum(dim=0)
    assert_printed(
        partial_sums,
        matrix(
            """
            0.0925 0.1795 0.1416
            0.2847 0.4658 0.4608
            0.4742 0.7485 0.7775
            0.5356 0.8352 0.8780
            0.6040 0.9419 1.0133
            0.6860 1.0570 1.1383
            """
        ),
    )


def test_001_erratum_a_square_matrix_hides_a_product_the_wrong_way_round(
    embeddings: Tensor,
) -> None:
    W_query, W_key, W_value = trainable_matrices(3, 3)
    queries, _, _ = reference("self_attention", "project_qkv")(embeddings, W_query, W_key, W_value)
    query_as_printed = W_query @ embeddings[2]
    assert query_as_printed.shape == queries[2].shape
    assert (query_as_printed - queries[2]).abs().max() > 0.1


# --- 004: trainable weights, d_out = 2 -----------------------------------------------------------


def test_004_query_2_and_its_matrix(embeddings: Tensor) -> None:
    W_query, W_key, W_value = trainable_matrices(3, 2)
    assert_printed(W_query, [[0.2961, 0.5166], [0.2517, 0.6886], [0.0740, 0.8665]])

    project_qkv = reference("self_attention", "project_qkv")
    queries, _, _ = project_qkv(embeddings, W_query, W_key, W_value)
    assert_printed(queries[JOURNEY], [0.4306, 1.4551])

    probes = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    queries, _, _ = project_qkv(probes, W_query, W_key, W_value)
    assert_printed(queries, [[0.2961, 0.5166], [0.2517, 0.6886], [0.3701, 1.3831]])


def test_004_scores_of_all_queries(embeddings: Tensor) -> None:
    queries, keys, _ = reference("self_attention", "project_qkv")(
        embeddings, *trainable_matrices(3, 2)
    )
    scaled = reference("self_attention", "scaled_scores")(queries, keys)
    assert_printed(
        scaled * 2**0.5,  # 004 prints them before the scaling
        matrix(
            """
            0.9231 1.3545 1.3241 0.7910 0.4032 1.1330
            1.2705 1.8524 1.8111 1.0795 0.5577 1.5440
            1.2544 1.8284 1.7877 1.0654 0.5508 1.5238
            0.6973 1.0167 0.9941 0.5925 0.3061 0.8475
            0.6114 0.8819 0.8626 0.5121 0.2707 0.7307
            0.8995 1.3165 1.2871 0.7682 0.3937 1.0996
            """
        ),
    )


def test_004_weights_and_context_vector_of_query_2(embeddings: Tensor) -> None:
    queries, keys, values = reference("self_attention", "project_qkv")(
        embeddings, *trainable_matrices(3, 2)
    )
    query_2 = queries[JOURNEY : JOURNEY + 1]

    attn_scores = reference("self_attention", "scaled_scores")(query_2, keys)
    attn_weights = reference("softmax", "softmax_rows")(attn_scores)
    assert_printed(attn_weights, [[0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]])

    attention = reference("self_attention", "scaled_dot_product_attention")
    assert_printed(attention(query_2, keys, values), [[0.3061, 0.8210]])


def test_004_self_attention_v1(embeddings: Tensor) -> None:
    torch.manual_seed(123)
    attention = reference("self_attention", "SelfAttention_v1")(3, 2)
    assert_printed(
        attention(embeddings),
        [
            [0.2996, 0.8053],
            [0.3061, 0.8210],
            [0.3058, 0.8203],
            [0.2948, 0.7939],
            [0.2927, 0.7891],
            [0.2990, 0.8040],
        ],
    )


@pytest.fixture
def attention_v2() -> Any:
    """The layer that 004 draws under seed 789, and takes its weights from afterwards."""
    torch.manual_seed(789)
    return reference("self_attention", "SelfAttention_v2")(3, 2)


CONTEXT_OF_V2 = [
    [-0.0739, 0.0713],
    [-0.0748, 0.0703],
    [-0.0749, 0.0702],
    [-0.0760, 0.0685],
    [-0.0763, 0.0679],
    [-0.0754, 0.0693],
]


def test_004_self_attention_v2(embeddings: Tensor, attention_v2: Any) -> None:
    assert_printed(attention_v2(embeddings), CONTEXT_OF_V2)


def test_004_v1_with_the_weights_of_v2_gives_the_same_context(
    embeddings: Tensor, attention_v2: Any
) -> None:
    attention_v1 = reference("self_attention", "SelfAttention_v1")(3, 2)
    v1_weights_from_v2 = reference("self_attention", "v1_weights_from_v2")
    attention_v1.load_state_dict(v1_weights_from_v2(attention_v2.state_dict()))
    assert_printed(attention_v1(embeddings), CONTEXT_OF_V2)


# --- 004: no peeking -----------------------------------------------------------------------------

CAUSAL_WEIGHTS = matrix(
    """
    1.0000 0.0000 0.0000 0.0000 0.0000 0.0000
    0.5517 0.4483 0.0000 0.0000 0.0000 0.0000
    0.3800 0.3097 0.3103 0.0000 0.0000 0.0000
    0.2758 0.2460 0.2462 0.2319 0.0000 0.0000
    0.2175 0.1983 0.1984 0.1888 0.1971 0.0000
    0.1935 0.1663 0.1666 0.1542 0.1666 0.1529
    """
)


@pytest.fixture
def scores_v2(embeddings: Tensor, attention_v2: Any) -> Any:
    """Scaled scores of the layer drawn under seed 789."""
    queries, keys = attention_v2.W_query(embeddings), attention_v2.W_key(embeddings)
    return reference("self_attention", "scaled_scores")(queries, keys)


def test_004_mask_is_the_triangle_above_the_diagonal() -> None:
    printed = torch.tensor(
        [
            [0, 1, 1, 1, 1, 1],
            [0, 0, 1, 1, 1, 1],
            [0, 0, 0, 1, 1, 1],
            [0, 0, 0, 0, 1, 1],
            [0, 0, 0, 0, 0, 1],
            [0, 0, 0, 0, 0, 0],
        ]
    )
    assert torch.equal(reference("causal_attention", "causal_mask")(6), printed.bool())


def test_004_weights_before_masking(scores_v2: Tensor) -> None:
    assert_printed(
        reference("softmax", "softmax_rows")(scores_v2),
        matrix(
            """
            0.1921 0.1646 0.1652 0.1550 0.1721 0.1510
            0.2041 0.1659 0.1662 0.1496 0.1665 0.1477
            0.2036 0.1659 0.1662 0.1498 0.1664 0.1480
            0.1869 0.1667 0.1668 0.1571 0.1661 0.1564
            0.1830 0.1669 0.1670 0.1588 0.1658 0.1585
            0.1935 0.1663 0.1666 0.1542 0.1666 0.1529
            """
        ),
    )


def test_004_masked_scores(scores_v2: Tensor) -> None:
    mask = reference("causal_attention", "causal_mask")(6)
    unscaled = scores_v2 * 2**0.5  # 004 prints them before the scaling
    assert_printed(
        unscaled.masked_fill(mask, -torch.inf),
        matrix(
            """
            0.2899   -inf   -inf   -inf   -inf   -inf
            0.4656 0.1723   -inf   -inf   -inf   -inf
            0.4594 0.1703 0.1731   -inf   -inf   -inf
            0.2642 0.1024 0.1036 0.0186   -inf   -inf
            0.2183 0.0874 0.0882 0.0177 0.0786   -inf
            0.3408 0.1270 0.1290 0.0198 0.1290 0.0078
            """
        ),
    )


def test_004_causal_weights_by_masking_before_the_softmax(scores_v2: Tensor) -> None:
    mask = reference("causal_attention", "causal_mask")(6)
    assert_printed(reference("causal_attention", "masked_softmax")(scores_v2, mask), CAUSAL_WEIGHTS)


def test_004_causal_weights_by_renormalizing_after_the_softmax(scores_v2: Tensor) -> None:
    attn_weights = reference("softmax", "softmax_rows")(scores_v2)
    renormalized = reference("causal_attention", "renormalized_causal_weights")(attn_weights)
    assert_printed(renormalized, CAUSAL_WEIGHTS)


def test_004_dropout_of_ones() -> None:
    ones = torch.ones(6, 6)
    printed = matrix(
        """
        2 2 0 2 2 0
        0 0 0 2 0 2
        2 2 2 2 0 2
        0 2 2 0 0 2
        0 2 0 2 0 2
        0 2 2 2 2 0
        """
    )
    torch.manual_seed(123)
    drawn = nn.Dropout(0.5)(ones)
    assert_printed(drawn, printed)

    kept = drawn != 0
    assert_printed(reference("causal_attention", "apply_dropout")(ones, kept, 0.5), printed)


# --- 004: several heads --------------------------------------------------------------------------

CONTEXT_OF_TWO_HEADS = matrix(
    """
    -0.4519  0.2216 0.4772 0.1063
    -0.5874  0.0058 0.5891 0.3257
    -0.6300 -0.0632 0.6202 0.3860
    -0.5675 -0.0843 0.5478 0.3589
    -0.5526 -0.0981 0.5321 0.3428
    -0.5299 -0.1081 0.5077 0.3493
    """
)


def test_004_causal_attention_is_the_first_head_of_the_wrapper(batch: Tensor) -> None:
    """004 prints only its shape; under the same seed its figures are the wrapper's first two."""
    torch.manual_seed(123)
    attention = reference("causal_attention", "CausalAttention")(3, 2, 6, 0.0)
    context_vecs = attention(batch)
    assert context_vecs.shape == (2, 6, 2)
    assert_printed(context_vecs, [[row[:2] for row in CONTEXT_OF_TWO_HEADS]] * 2)


def test_004_multi_head_attention_wrapper(batch: Tensor) -> None:
    torch.manual_seed(123)
    attention = reference("multi_head_attention", "MultiHeadAttentionWrapper")(3, 2, 6, 0.0, 2)
    context_vecs = attention(batch)
    assert context_vecs.shape == (2, 6, 4)
    assert_printed(context_vecs, [CONTEXT_OF_TWO_HEADS] * 2)


def test_004_multi_head_attention(batch: Tensor) -> None:
    torch.manual_seed(123)
    attention = reference("multi_head_attention", "MultiHeadAttention")(3, 2, 6, 0.0, 2)
    context_vecs = attention(batch)
    assert context_vecs.shape == (2, 6, 2)
    printed = [
        [0.3190, 0.4858],
        [0.2943, 0.3897],
        [0.2856, 0.3593],
        [0.2693, 0.3873],
        [0.2639, 0.3928],
        [0.2575, 0.4028],
    ]
    assert_printed(context_vecs, [printed, printed])


@pytest.mark.parametrize("leading", [(), (10,), (4, 6)], ids=str)
def test_004_linear_by_hand_is_a_linear_layer(leading: tuple[int, ...]) -> None:
    linear = nn.Linear(3, 5)
    x = torch.rand(*leading, 3)
    by_hand = reference("self_attention", "linear_by_hand")(x, linear.weight, linear.bias)
    assert by_hand.shape == (*leading, 5)
    torch.testing.assert_close(by_hand, linear(x))
