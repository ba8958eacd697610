"""Unit 12, gpt: a language model of your own.

A language model reads token ids, which are numbers of words or letters in a list, the vocabulary.
For each position, it scores every id as the next id. Here you build the model from your blocks, and
the parts around it: ids become vectors, scores become a loss, the loss changes the weights, and
scores become a text. In the last exercise, the model writes without reading the whole text again
at every step.

This holds for all exercises of this unit. A vocabulary has `vocab` ids, 0 to vocab - 1. The scores
that a model gives for them are called logits: any numbers, which a softmax turns into
probabilities. Arguments come by position, in the order of the signature. You may use your own
earlier answers. Names and initial values of parameters are free, projections may share one layer,
and layers may be bare parameters. The loops over parameters in the examples fit models with one
layer for each projection.

Masks in this kit are boolean and True for entries that do NOT count, as `masked_fill` expects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


def embed_tokens(
    ids: Int[Tensor, "batch tokens"],
    token_table: Float[Tensor, "vocab d"],
    position_table: Float[Tensor, "context d"],
) -> Float[Tensor, "batch tokens d"]:
    """Turn token ids into vectors that encode each token and its position.

        out[b, t] = token_table[ids[b, t]] + position_table[t]

    Both tables are learned. Row i of the token table is the vector of id i, wherever it occurs.
    Row t of the position table is the vector of position t, whichever token is there. Positions
    count from 0 in every row of the batch.

    Why: attention compares vectors, not ids. And without the second table, a token's vector would
    be the same at every position. The original Transformer also multiplies the tokens' vectors by
    √d (Vaswani et al. 2017, section 3.4); GPT does not, and this function does not either.

    Takes:
        ids: int (batch, tokens), each from 0 to vocab - 1; an id may occur more than once.
        token_table: (vocab, d), a row for each id.
        position_table: (context, d), a row for each position; tokens ≤ context.

    Returns:
        (batch, tokens, d): the sum of both rows for each token.

    Rules:
        forbidden: Ready-made attention functions are off limits; `F.embedding` is welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `ids` and both tables stay as they were.
        gradients: Gradients flow back to both tables. A row that is used more than once gets the
            sum of its gradients, and a row that is not used gets 0.

    Example: a vocabulary of three ids, two features, and four positions. Id 2 comes twice, and gets
    a different vector at each position.

    >>> token_table = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    >>> position_table = torch.tensor([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0], [0.4, 0.0]])
    >>> embed_tokens(torch.tensor([[2, 0, 2]]), token_table, position_table)
    tensor([[[5.1000, 5.0000],
             [1.2000, 0.0000],
             [5.3000, 5.0000]]])

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training",
    section 3.1, https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf.
    """
    raise NotImplementedError


def next_token_loss(
    logits: Float[Tensor, "batch tokens vocab"],
    ids: Int[Tensor, "batch tokens"],
    ignore: Bool[Tensor, "batch tokens"] | None = None,
) -> Float[Tensor, ""]:
    """Measure how badly each position predicts the id that comes next.

        loss[b, t] = -log softmax(logits[b, t])[ids[b, t + 1]]     for t = 0, …, tokens - 2
        result     = mean of all losses whose target counts

    The logits at position t are a guess at the id at position t + 1: that id is their target. So
    the last logits have no target, and ids[:, 0] is no position's target. The mean is taken once,
    over all targets of the whole batch that count: every target weighs the same, in short rows and
    in long ones.

    Why: this one number is all that a language model learns from. A model that knows nothing gives
    every id the same probability, and its loss is log(vocab). A model that is sure and right comes
    near 0. The model need not predict padding or a question: `ignore` leaves such targets out.

    Takes:
        logits: (batch, tokens, vocab), the scores of all ids at each position; tokens ≥ 2.
        ids: int (batch, tokens), the text itself, each id from 0 to vocab - 1.
        ignore: bool (batch, tokens) or None, by default None; True where an id is not counted as a
            target.

    Returns:
        (): the mean loss, a tensor without dimensions.

    Rules:
        ignored: If ignore[b, t] is True, the loss at position t - 1 does not count, because its
            target is ids[b, t]. ignore[:, 0] changes nothing. All targets of a row may be ignored,
            but never all targets of the batch.
        none: Leaving `ignore` out and passing None mean the same: all targets count.
        large: Logits may be as large as ±1000.
        forbidden: Ready-made attention functions are off limits; torch's softmax, log_softmax and
            `F.cross_entropy` are welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `logits`, `ids` and `ignore` stay as they were.
        gradients: Gradients flow back to `logits`.

    Example: a vocabulary of three ids. The first guess is undecided, so its loss is log 3 = 1.0986.
    The second guess gives its target, id 2, a probability of 3/4, so its loss is log(4/3) = 0.2877.
    If id 2 is ignored, the mean is the first loss alone.

    >>> logits = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, 1.7918], [5.0, 0.0, 0.0]]])
    >>> ids = torch.tensor([[0, 1, 2]])
    >>> next_token_loss(logits, ids)
    tensor(0.6931)
    >>> next_token_loss(logits, ids, torch.tensor([[False, False, True]]))
    tensor(1.0986)

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training",
    section 3.1,
    https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf.
    The paper's formula 1 is a sum to maximise. The loss here is minus the mean of its terms.
    """
    raise NotImplementedError


class GPT(nn.Module):
    """Score every token of the vocabulary as the next token, at every position.

        x      = token_table[ids] + position_table[0], position_table[1], …
        x      = block(x)                           for every block in turn
        logits = final_norm(x) · token_tableᵀ

    A block computes what `TransformerBlock` computes: h = x + attention(norm1(x)), and then
    h + feed_forward(norm2(h)). There are `num_layers` blocks, each with weights of its own. The
    last norm is a layer norm with gain and shift, like the norms of the blocks; all of them add
    1e-5 to the variance. The last product compares each vector with every row of the token table;
    no other layer computes the logits. The logits are scores: no softmax comes after them.

    Your own earlier answers are welcome, and so are `nn.Embedding`, `nn.LayerNorm` and `nn.GELU`,
    in its exact form or the tanh form. Names and initial values of parameters are free; but a model
    learns much faster if its tables start with a standard deviation near 0.02, and not near 1.

    Why: this is GPT-2, smaller. The token table serves twice, to read and to write: tokens that are
    used alike get similar rows, and similar rows get similar scores. It is also the largest part of
    a small model, and the model has it only once.

    Made with:
        vocab_size: int, the number of tokens in the vocabulary; every id is smaller.
        d_model: int, the width of a token inside, a multiple of num_heads.
        num_heads: int, the number of heads of every block.
        num_layers: int, the number of blocks.
        d_hidden: int, the hidden width of every feed-forward layer.
        context_length: int, the number of tokens of the longest text, and the number of positions.
        dropout: float, 0 ≤ dropout < 1, the probability with which an attention weight is dropped
            in training.

    Takes:
        ids: int (batch, tokens), a batch of texts, int64, with tokens ≤ context_length.

    Returns:
        (batch, tokens, vocab_size): the logits of the token that follows each position.

    Rules:
        forbidden: Ready-made attention and the layers of torch that use it are off limits; torch's
            softmax is welcome.
        causal: No logit depends on a token that comes later in the text. An answer that breaks this
            rule gets at most half of the points.
        tied: The output uses the token table itself, not a second table and not a copy, and has no
            bias. An answer that breaks this rule gets at most half of the points.
        context: More than `context_length` tokens raise an exception, of any ordinary type.
        shorter: Texts may have fewer tokens than `context_length`, and each call may have another
            number of tokens.
        bias: Queries, keys and values have no bias. Every other linear layer of a block has one,
            and every norm has a gain and a shift. Nothing else is learned.
        eps: All norms add 1e-5 to the variance. This matters if all features of a token are nearly
            the same.
        dropout: In training, attention weights are dropped, unless `dropout` is 0. You may drop in
            other places too.
        eval: After `.eval()` nothing is dropped.
        device: Masks and positions are on the module's device: they are buffers, or are built on
            the device of the ids.
        dtype: After `.double()`, everything is computed in float64, though a root may be taken in
            float32.
        unchanged: `ids` stays as it was.
        gradients: Gradients flow to every parameter; the token table gets gradients from both of
            its uses.

    Example: identity matrices, and 0.1 for every bias, gain and shift. The text has ids 0 and 2. Id
    4 has a row of zeros in the token table, so its score is 0 at both positions.

    >>> model = GPT(5, 4, 2, 2, 7, 4, 0.0)
    >>> for weight in model.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.1)
    >>> model(torch.tensor([[0, 2]])).detach()
    tensor([[[ 0.2732,  0.0423,  0.0423,  0.0423,  0.0000],
             [ 0.0213,  0.1990,  0.1990, -0.0192,  0.0000]]])

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3,
    https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf;
    the shared table: Press and Wolf 2017, "Using the Output Embedding to Improve Language Models",
    section 3, https://arxiv.org/abs/1608.05859. Queries, keys and values have a bias in GPT-2, and
    none here.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_hidden: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens vocab_size"]:
        raise NotImplementedError


def adamw_step(
    parameter: Float[Tensor, " ..."],
    gradient: Float[Tensor, " ..."],
    momentum: Float[Tensor, " ..."],
    square: Float[Tensor, " ..."],
    step: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> tuple[Float[Tensor, " ..."], Float[Tensor, " ..."], Float[Tensor, " ..."]]:
    """Do one step of AdamW: change a parameter by its gradient, as torch.optim.AdamW does.

        m = β₁ · momentum + (1 - β₁) · gradient
        v = β₂ · square + (1 - β₂) · gradient²
        m̂ = m / (1 - β₁^step)
        v̂ = v / (1 - β₂^step)
        p = parameter - lr · weight_decay · parameter - lr · m̂ / (√v̂ + eps)

    All operations are element by element. `momentum` is a running mean of the gradients, and
    `square` is a running mean of their squares. Both start at 0, so they are too small in the first
    steps; the divisions for m̂ and v̂ correct this. m̂ and v̂ serve this step only; the next step
    gets m and v. The decay and the step both start from the old parameter.

    Why: if the gradients of a parameter agree, it moves by nearly `lr` at each step, however small
    they are; if they contradict each other, it hardly moves. The decay pulls weights towards 0.
    Adam adds the decay to the gradient, so √v̂ divides the decay too; AdamW keeps the two apart.

    Takes:
        parameter: (...), the old weights.
        gradient: (...), the gradient of the loss for them.
        momentum: (...), m of the previous step, 0 for the first step.
        square: (...), v of the previous step, 0 for the first step.
        step: int, the number of this step; the first has number 1.
        lr: float, the learning rate.
        betas: a tuple of two floats, β₁ and β₂, from 0 to below 1.
        eps: float, added to √v̂.
        weight_decay: float, the strength of the decay; 0 means none.

    Returns:
        A tuple of three, p, m and v: (...), (...), (...). Gradients through this step are not
        tested.

    Rules:
        leading: A parameter may have any number of dimensions, or none.
        forbidden: torch.optim's Adam and AdamW and their functions are off limits, and so are
            ready-made attention functions.
        dtype: float64 in, float64 out, in full precision.
        unchanged: All four tensors stay as they were: p, m and v are new tensors.

    Example: the first step of one weight. m is 0.3 · 2 and v is 0.1 · 4. Corrected, they are 2 and
    4, so the step is 0.3 · 2 / (2 + 0.05) = 0.2927. The decay subtracts 0.3 · 0.1 · 1 more.

    >>> weight, zero = torch.tensor([1.0]), torch.tensor([0.0])
    >>> adamw_step(weight, torch.tensor([2.0]), zero, zero, 1, 0.3, (0.7, 0.9), 0.05, 0.1)
    (tensor([0.6773]), tensor([0.6000]), tensor([0.4000]))

    Source: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", Algorithm 2,
    https://arxiv.org/abs/1711.05101. There, the decay is not multiplied by the learning rate α;
    here it is, as in torch.
    """
    raise NotImplementedError


def generate(
    model: nn.Module, ids: Int[Tensor, "batch tokens"], new_tokens: int, context_length: int
) -> Int[Tensor, "batch tokens+new_tokens"]:
    """Let a language model write: append the likeliest next id to each row, again and again.

        visible = the last context_length ids of the row, or all if there are fewer
        next id = argmax over the vocabulary of model(visible)[row, last position]
        ids     = ids, followed by the next id          new_tokens times

    The model gives logits for every position, because it was trained to guess the next id at every
    position. Here only the guess at the last position counts: the other next ids are already in the
    text. Each row goes on with its own next id.

    Why: a GPT has no positions beyond its context length, but a text may grow longer. So the model
    reads through a window that moves along with the end of the text. Taking the likeliest id each
    time is called greedy decoding; `sample_next` draws by chance instead.

    Takes:
        model: an nn.Module that is called as model(ids), with int64 ids (batch, visible), and gives
            logits (batch, visible, vocab). It is in eval mode, and its largest logit is never tied.
            It raises an exception for more than `context_length` ids.
        ids: int (batch, tokens), the prompt, int64. There is at least one token.
        new_tokens: int, 0 or more, how many ids to append to each row.
        context_length: int, at least 1, how many ids the model can see at once.

    Returns:
        int (batch, tokens+new_tokens): the whole prompt, followed by the new ids, int64.

    Rules:
        context: The text may be longer than `context_length`, because it grows or because the
            prompt is long. The model then sees the last `context_length` ids, and all ids are
            returned.
        zero: With `new_tokens` = 0, the prompt comes back.
        unchanged: `ids` stays as it was, and so do the weights of the model.

    Example: for this model, the likeliest next id is the last digit of the sum of the ids that it
    sees, which are at most three. 1 + 2 = 3, and 1 + 2 + 3 = 6. Then the model no longer sees the
    1: 2 + 3 + 6 = 11, which gives 1.

    >>> class AddsUp(nn.Module):
    ...     def forward(self, ids):
    ...         return nn.functional.one_hot(ids.cumsum(dim=1) % 10, 10).float()
    >>> generate(AddsUp(), torch.tensor([[1, 2]]), new_tokens=4, context_length=3)
    tensor([[1, 2, 3, 6, 1, 0]])

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3,
    https://arxiv.org/abs/1904.09751. It shows that greedy text soon repeats itself.
    """
    raise NotImplementedError


def sample_next(
    logits: Float[Tensor, " vocab"],
    u: float,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> int:
    """Choose the next id by a random number u, so that likely ids are chosen more often.

        1. logits / temperature
        2. top_k: keep the top_k largest logits
        3. softmax over what is kept
        4. top_p: keep the fewest ids, the most probable first, with a sum of at least top_p
        5. divide by the sum of what is kept
        6. the first id, in order of ids, with p[0] + p[1] + … + p[id] > u

    An id that is not kept has probability 0. Step 4 compares `top_p` with the probabilities of
    step 3, which sum to 1 over what top_k has kept; the id that reaches `top_p` is kept as well.
    In step 6 the ids lie side by side between 0 and 1, each as wide as its probability, and u hits
    one of them. They lie in order of ids: 0, 1, 2, …, not sorted by probability.

    Why: always taking the most probable id makes dull texts that repeat themselves. Chance brings
    variety. But thousands of unlikely ids have a large probability together, and a single unlikely
    id can spoil a text. A temperature below 1 makes likely ids likelier; top_k and top_p remove
    unlikely ids.

    Takes:
        logits: (vocab,), finite numbers; no two are equal.
        u: float, from 0 to below 1, as torch.rand draws it. Draw nothing yourself.
        temperature: float, 0 or more.
        top_k: int or None, at least 1; None keeps all, and so does a number of vocab or more.
        top_p: float or None, above 0 and at most 1; None keeps all.

    Returns:
        An int: the id. A tensor without dimensions that holds an integer is accepted too.

    Rules:
        greedy: With a temperature of 0, the result is the id of the largest logit, whatever the
            other arguments are.
        none: None and a left-out argument mean the same, and top_k may be larger than vocab.
        ends: u = 0 hits the first id that is kept. For u just below 1, rounding may leave no sum
            above u: then the result is the last id with a probability above 0.
        large: Logits may lie between -1000 and 1000. Divided by the temperature, they stay in this
            range.
        forbidden: Ready-made attention functions are off limits; torch's softmax, sort and topk
            are welcome.
        dtype: Logits may be float64.
        unchanged: `logits` stays as it was.

    Example: four ids with probabilities 0.1, 0.4, 0.2 and 0.3. u = 0.6 lies between 0.5 and 0.7, so
    it hits id 2. With top_k = 2, ids 1 and 3 are left, with probabilities 4/7 and 3/7: id 3 begins
    at 0.5714. With top_p = 0.65, the probabilities 0.4 and 0.3 are enough, so the same ids are
    left. In tests, u is never close to a border between two ids.

    >>> logits = torch.tensor([0.1, 0.4, 0.2, 0.3]).log()
    >>> sample_next(logits, 0.6)
    2
    >>> sample_next(logits, 0.6, 1.0, 2)
    3
    >>> sample_next(logits, 0.6, 1.0, None, 0.65)
    3
    >>> sample_next(logits, 0.6, 0.0)
    1

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1 for
    top_p, 3.2 for top_k and 3.3 for the temperature, https://arxiv.org/abs/1904.09751.
    """
    raise NotImplementedError


class CachedGPT(nn.Module):
    """Compute the logits of `GPT` for new tokens, whose past comes as a cache.

        x      = token_table[ids] + position_table[seen], position_table[seen + 1], …
        x      = block(x, its part of the cache)    for every block in turn
        logits = final_norm(x) · token_tableᵀ

    `seen` is the number of tokens in the cache, or 0 without a cache. The model has the same
    parameters as a `GPT`; only the new tokens go through it. In every block, the attention layer
    looks at the keys and values of the past as well, as `CachedAttention` does. Norms and
    feed-forward layers work on each token alone, so they need no past. The tokens of a text may
    come one at a time, or in chunks of any size: every token gets the logits that it gets when all
    tokens come at once.

    You may build your cache from tensors, numbers and None, in tuples, lists and dictionaries with
    strings as keys. Between two calls it goes through another process, so it cannot hold objects of
    your own classes. You are as free in the choice of layers as in `GPT`.

    Why: a model writes one token at a time. Without a cache, the 100th token costs a hundred times
    as much as the first, and nearly all of that work repeats earlier work.

    Made with:
        vocab_size: int, the number of tokens in the vocabulary; every id is smaller.
        d_model: int, the width of a token inside, a multiple of num_heads.
        num_heads: int, the number of heads of every block.
        num_layers: int, the number of blocks.
        d_hidden: int, the hidden width of every feed-forward layer.
        context_length: int, the number of positions, for past and new tokens together.
        dropout: float, 0 ≤ dropout < 1; not used, but `GPT` has the same argument.

    Takes:
        ids: int (batch, tokens), the new tokens, int64, any number of them.
        cache: The second result of an earlier call, or None if there is no past.

    Returns:
        A pair (logits, cache). `logits` is (batch, tokens, vocab_size), for the new tokens only.
        The new cache holds all tokens so far.

    Rules:
        forbidden: Ready-made attention and the layers of torch that use it are off limits; torch's
            softmax is welcome.
        cost: The past is not computed again: a new token after 64 tokens takes at most twice the
            work of a new token after 16. What Python and NumPy compute is not counted, so at most
            32 numbers may leave torch, through .item(), .tolist(), .numpy(), float() or `if`. An
            answer that breaks this rule gets at most half of the points.
        context: More than `context_length` tokens, old and new together, raise an exception, of any
            ordinary type.
        none: Leaving `cache` out and passing None mean the same.
        state: The module itself remembers nothing, so that it can continue two texts in turn.
        tied: The output uses the token table itself, as in `GPT`, and has no bias.
        bias: Queries, keys and values have no bias. Every other linear layer of a block has one,
            and every norm has a gain and a shift. Nothing else is learned.
        eps: All norms add 1e-5 to the variance. This matters if all features of a token are nearly
            the same.
        dropout: Nothing is ever dropped, whatever `dropout` is, not even in training.
        device: Masks and positions are on the module's device: they are buffers, or are built on
            the device of the ids.
        dtype: After `.double()`, everything is computed in float64, the cache too; a root may be
            taken in float32.
        unchanged: `ids` and the cache that comes in stay as they were.
        gradients: Gradients flow to every parameter.

    Example: identity matrices, and 0.1 for every bias, gain and shift. Ids 0 and 2 come first, and
    then id 1. When all three tokens come at once, the third gets the same logits as in the last
    line.

    >>> model = CachedGPT(5, 4, 2, 2, 7, 4, 0.0)
    >>> for weight in model.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.1)
    >>> logits, cache = model(torch.tensor([[0, 2]]))
    >>> logits.detach()
    tensor([[[ 0.2732,  0.0423,  0.0423,  0.0423,  0.0000],
             [ 0.0213,  0.1990,  0.1990, -0.0192,  0.0000]]])
    >>> logits, cache = model(torch.tensor([[1]]), cache)
    >>> logits.detach()
    tensor([[[ 0.0132,  0.1996,  0.1996, -0.0124,  0.0000]]])

    Source: Shazeer 2019, "Fast Transformer Decoding", section 2.4,
    https://arxiv.org/abs/1911.02150, for one layer; the model is that of Radford et al. 2019,
    section 2.3.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_hidden: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, ids: Int[Tensor, "batch tokens"], cache: Any = None
    ) -> tuple[Float[Tensor, "batch tokens vocab_size"], Any]:
        raise NotImplementedError
