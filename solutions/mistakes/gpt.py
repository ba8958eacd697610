"""Known answers of unit 12, gpt: mistakes that people make, and right answers in other forms."""

import math
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake

# --- embed_tokens --------------------------------------------------------------------------------

mistake(
    "embed_tokens", "no-positions", "The position is left out",
    hint="Does an id that occurs twice get two different vectors?",
    change={"return token_vectors + position_vectors": "return token_vectors"},
)  # fmt: skip

mistake(
    "embed_tokens", "no-tokens", "Only the position is left",
    hint="Do two different ids at one position get different vectors?",
    change={
        "return token_vectors + position_vectors": (
            "return position_vectors.expand(ids.shape[0], -1, -1)"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", "positions-by-id", "The position table is read at the ids",
    hint="Which row of the position table belongs to the first token: does it depend on its id?",
    change={"position_table[:tokens]": "position_table[ids % len(position_table)]"},
)  # fmt: skip

mistake(
    "embed_tokens", "positions-by-id-unchecked", "The position table is read at the ids",
    hint="Which row of the position table belongs to the first token: does it depend on its id?",
    change={"position_table[:tokens]": "position_table[ids]"},
)  # fmt: skip

mistake(
    "embed_tokens", "scaled-by-root-d", "The tokens' vectors are multiplied by √d",
    hint="Is there a factor in the formula?",
    change={"token_table[ids]": "token_table[ids] * token_table.shape[1] ** 0.5"},
)  # fmt: skip

mistake(
    "embed_tokens", "both-scaled-by-root-d", "The sum is multiplied by √d",
    hint="Is there a factor in the formula?",
    change={
        "return token_vectors + position_vectors": (
            "return (token_vectors + position_vectors) * token_table.shape[1] ** 0.5"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", "multiplied", "The two vectors are multiplied, not added",
    hint="Which operation does the formula have between the two rows?",
    change={"token_vectors + position_vectors": "token_vectors * position_vectors"},
)  # fmt: skip

mistake(
    "embed_tokens", "averaged", "The two vectors are averaged, not added",
    hint="Is anything divided by 2 in the formula?",
    change={"token_vectors + position_vectors": "(token_vectors + position_vectors) / 2"},
)  # fmt: skip

mistake(
    "embed_tokens", "concatenated", "The two vectors stand side by side",
    hint="How many numbers should a token's vector have?",
    breaks=("returns",),
    change={
        "return token_vectors + position_vectors": (
            "return torch.cat([token_vectors, position_vectors.expand_as(token_vectors)], dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", "last-positions", "Positions count from the end of the table",
    hint="Which row of the position table does the first token get?",
    change={"position_table[:tokens]": "position_table[-tokens:]"},
)  # fmt: skip

mistake(
    "embed_tokens", "positions-backwards", "Positions count backwards",
    hint="Which row of the position table does the first token get?",
    change={"position_table[:tokens]": "position_table[:tokens].flip(0)"},
)  # fmt: skip

mistake(
    "embed_tokens", "positions-from-one", "Positions count from 1",
    hint="Which row of the position table does the first token get?",
    change={"position_table[:tokens]": "position_table.roll(-1, 0)[:tokens]"},
)  # fmt: skip

mistake(
    "embed_tokens", "positions-from-one-to-the-end", "Positions count from 1",
    hint="Which row of the position table does the first token get?",
    change={"position_table[:tokens]": "position_table[1 : tokens + 1]"},
)  # fmt: skip

mistake(
    "embed_tokens", "first-position-for-all", "Every token gets the first position",
    hint="Which row of the position table does the second token get?",
    change={"position_table[:tokens]": "position_table[0]"},
)  # fmt: skip

mistake(
    "embed_tokens", "length-as-position", "Every token gets one position, that of the length",
    hint="How many positions are there in a row of ids?",
    change={"position_table[:tokens]": "position_table[tokens - 1]"},
)  # fmt: skip

mistake(
    "embed_tokens", "positions-go-on-in-the-batch", "Positions go on in the next batch row",
    hint="At which position does the second row of the batch begin?",
    change={
        "position_table[:tokens]": (
            "position_table[torch.arange(ids.numel()).view(ids.shape) % len(position_table)]"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", "position-of-the-batch", "The position is the number of the batch row",
    hint="Which of the two dimensions of `ids` are the positions?",
    change={
        "position_table[:tokens]": (
            "position_table[torch.arange(ids.shape[0]) % len(position_table)][:, None]"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", "batch-counted-as-tokens",
    "The number of texts is taken for the number of tokens",
    hint="Which of the two numbers in ids.shape counts the tokens of a text?",
    change={"position_table[:tokens]": "position_table[: ids.shape[0]]"},
)  # fmt: skip

mistake(
    "embed_tokens", "positions-along-the-batch",
    "Each text gets one position, and its tokens share it",
    hint="Which axis of the sum are the tokens: do the positions lie along it?",
    change={"position_table[:tokens]": "position_table[:tokens, None]"},
)  # fmt: skip


mistake(
    "embed_tokens", "whole-position-table", "The position table is added as a whole",
    hint="How many rows has the position table, and how many tokens are there?",
    change={"position_table[:tokens]": "position_table"},
)  # fmt: skip

mistake(
    "embed_tokens", "first-batch-row-only", "All rows of the batch get the first one's tokens",
    hint="Change the second row of ids: does anything change?",
    change={"token_table[ids]": "token_table[ids[:1].expand_as(ids)]"},
)  # fmt: skip

mistake(
    "embed_tokens", "ids-from-one", "Ids are counted from 1",
    hint="Which row of the table belongs to id 0?",
    change={"token_table[ids]": "token_table[ids - 1]"},
)  # fmt: skip

mistake(
    "embed_tokens", "id-zero-is-padding", "Id 0 gets a vector of zeros, as if it were padding",
    hint="Is any id treated in a special way in the formula?",
    change={"token_table[ids]": "token_table[ids] * (ids != 0)[..., None]"},
)  # fmt: skip

mistake(
    "embed_tokens", "ids-added", "The ids themselves are added, and not their rows",
    hint="Which line looks an id up in the table?",
    change={"token_table[ids]": "ids[..., None]"},
)  # fmt: skip

mistake(
    "embed_tokens", "tables-swapped", "The two tables have changed places",
    hint="Which table has a row for each id?",
    change={
        "token_table[ids]": "position_table[ids % len(position_table)]",
        "position_table[:tokens]": (
            "token_table[torch.arange(tokens) % len(token_table)]"
        ),
    },
)  # fmt: skip


@mistake(
    "embed_tokens", "layers-of-its-own", "New layers with random weights are used",
    hint="Where do the numbers of the two tables that you were given come in?",
)  # fmt: skip
def embed_with_new_layers(ids, token_table, position_table):
    tokens = nn.Embedding(*token_table.shape, dtype=token_table.dtype)
    positions = nn.Embedding(*position_table.shape, dtype=token_table.dtype)
    return tokens(ids) + positions(torch.arange(ids.shape[1]))


common_mistakes("embed_tokens", "no-gradient")


@mistake(
    "embed_tokens", "copied-into-layers", "The tables are copied into layers, and never learn",
    hint="Which tensors have a .grad after backward: the tables, or the layers' own weights?",
    breaks=("gradients",),
    same_as={"no-gradient": "both cut off both tables"},
)  # fmt: skip
def embed_with_copies(ids, token_table, position_table):
    tokens = nn.Embedding.from_pretrained(token_table.detach())
    positions = nn.Embedding.from_pretrained(position_table.detach())
    return tokens(ids) + positions(torch.arange(ids.shape[1]))


mistake(
    "embed_tokens", "padding-row", "The row of id 0 never learns",
    hint="What does padding_idx do to a row's gradient?",
    breaks=("gradients",),
    change={"token_table[ids]": "torch.nn.functional.embedding(ids, token_table, padding_idx=0)"},
)  # fmt: skip

mistake(
    "embed_tokens", "token-table-detached", "The token table gets no gradient",
    hint="Which of the two tables has a .grad after backward?",
    breaks=("gradients",),
    change={"token_table[ids]": "token_table.detach()[ids]"},
)  # fmt: skip

mistake(
    "embed_tokens", "position-table-detached", "The position table gets no gradient",
    hint="Which of the two tables has a .grad after backward?",
    breaks=("gradients",),
    change={"position_table[:tokens]": "position_table[:tokens].detach()"},
)  # fmt: skip

mistake(
    "embed_tokens", "gradient-by-frequency", "A row's gradient is divided by how often it is used",
    hint="If a token occurs three times, how many gradients does its row get, and are they added?",
    breaks=("gradients",),
    change={
        "token_table[ids]": (
            "torch.nn.functional.embedding(ids, token_table, scale_grad_by_freq=True)"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", "norms-limited", "Long rows of the token table are made shorter, for good",
    hint="What does max_norm do to the table that it is given?",
    change={"token_table[ids]": "torch.nn.functional.embedding(ids, token_table, max_norm=1.0)"},
)  # fmt: skip

mistake(
    "embed_tokens", "one-hot-in-float32", "The one-hot vectors are float32, whatever the table is",
    hint="Which dtypes may the two sides of @ have?",
    breaks=("dtype",),
    change={
        "token_table[ids]": (
            "torch.nn.functional.one_hot(ids, len(token_table)).float() @ token_table"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", "positions-written-into-the-tables",
    "The sum is written into the caller's table",
    hint="Who else holds the tables that you were given?",
    breaks=("unchanged",),
    change={
        "    return token_vectors + position_vectors": (
            "    out = token_vectors + position_vectors\n"
            "    with torch.no_grad():\n"
            "        token_table[ids[0]] += position_vectors\n"
            "    return out"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", common="float32-inside",
    change={
        "token_vectors + position_vectors": (
            "(token_vectors.float() + position_vectors.float()).to(token_table)"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", common="calls-torch-attention",
    change={
        "token_table[ids]": (
            "torch.nn.functional.scaled_dot_product_attention("
            "torch.eye(len(token_table)).to(token_table)[ids] * 1e4, "
            "torch.eye(len(token_table)).to(token_table).expand(len(ids), -1, -1), "
            "token_table.expand(len(ids), -1, -1))"
        ),
    },
)  # fmt: skip

mistake(
    "embed_tokens", common="all-zeros",
    change={"token_vectors + position_vectors": "0 * (token_vectors + position_vectors)"},
)  # fmt: skip

common_mistakes("embed_tokens", "squeezed", "returns-float64", "nothing-returned")


@accepted("embed_tokens", "functional", "F.embedding, twice")
def embed_functional(ids, token_table, position_table):
    where = torch.arange(ids.size(-1), device=ids.device)
    return F.embedding(ids, token_table) + F.embedding(where, position_table)


@accepted("embed_tokens", "one-hot", "One-hot vectors times the table")
def embed_by_one_hot(idx, wte, wpe):
    _, t = idx.shape
    hot = F.one_hot(idx, num_classes=wte.size(0)).to(wte.dtype)
    return hot @ wte + wpe[:t].unsqueeze(0)


@accepted("embed_tokens", "token-by-token", "Two loops and a stack")
def embed_token_by_token(ids, token_table, position_table):
    rows = []
    for row in ids.tolist():
        rows.append(torch.stack([token_table[i] + position_table[t] for t, i in enumerate(row)]))
    print(len(rows))
    return torch.stack(rows)


@accepted("embed_tokens", "index-select", "Flattened, selected and shaped again")
def embed_by_index_select(ids, token_table, position_table):
    batch, tokens = ids.shape
    out = token_table.index_select(0, ids.flatten()).view(batch, tokens, -1)
    out += position_table.narrow(0, 0, tokens)
    return out


@accepted("embed_tokens", "functional-layers", "Layers that are called with the given tables")
def embed_by_layers(ids, token_table, position_table):
    def look_up(table, where):
        layer = nn.Embedding(*table.shape, dtype=table.dtype)
        return torch.func.functional_call(layer, {"weight": table}, (where,))

    positions = torch.arange(ids.shape[1]).expand_as(ids)
    return look_up(token_table, ids) + look_up(position_table, positions)


accepted(
    "embed_tokens", "comparison", "A comparison makes the one-hot vectors",
    change={
        "token_table[ids]": (
            "(ids[..., None] == torch.arange(len(token_table))).to(token_table) @ token_table"
        ),
    },
)  # fmt: skip

# --- next_token_loss -----------------------------------------------------------------------------

SHIFTED = "logits[:, :-1], ids[:, 1:]"
PICKED = "-log_probs.gather(-1, targets[..., None])[..., 0]"
COUNTED = "losses = losses[~ignore[:, 1:]]"

mistake(
    "next_token_loss", "not-shifted", "Each position is asked for its own id, not for the next",
    hint="Which id should the first logits guess: the one that they have seen, or the one after?",
    change={SHIFTED: "logits, ids", "ignore[:, 1:]": "ignore"},
)  # fmt: skip

mistake(
    "next_token_loss", "own-id-guessed", "Each position but the last is asked for its own id",
    hint="Which id should the first logits guess: the one that they have seen, or the one after?",
    change={SHIFTED: "logits[:, :-1], ids[:, :-1]"},
)  # fmt: skip

mistake(
    "next_token_loss", "own-id-guessed-from-the-second",
    "Each position but the first is asked for its own id",
    hint="Which id should the first logits guess: the one that they have seen, or the one after?",
    change={SHIFTED: "logits[:, 1:], ids[:, 1:]"},
)  # fmt: skip

mistake(
    "next_token_loss", "previous-id-guessed", "Each position is asked for the id before it",
    hint="Do logits look forward or back: is ids[:, 0] a target?",
    change={SHIFTED: "logits[:, 1:], ids[:, :-1]"},
)  # fmt: skip

mistake(
    "next_token_loss", "rolled", "The last position is asked for the first id",
    hint="Which id comes after the last one?",
    change={SHIFTED: "logits, ids.roll(-1, 1)", "ignore[:, 1:]": "ignore.roll(-1, 1)"},
)  # fmt: skip

mistake(
    "next_token_loss", "two-ahead", "The id after the next one is the target",
    hint="Which id should the first logits guess?",
    change={
        "    log_probs =": (
            "    if ids.shape[1] > 2:\n"
            "        predictions, targets = logits[:, :-2], ids[:, 2:]\n"
            "        ignore = None if ignore is None else ignore[:, 1:]\n"
            "    log_probs ="
        ),
    },
)  # fmt: skip


@mistake(
    "next_token_loss", "flattened-first",
    "The batch is one long text, and a row guesses the first id of the next",
    hint="What is the target of the last logits in the first row?",
)  # fmt: skip
def loss_of_one_long_text(logits, ids, ignore=None):
    losses = F.cross_entropy(logits.flatten(0, 1)[:-1], ids.flatten()[1:], reduction="none")
    return losses.mean() if ignore is None else losses[~ignore.flatten()[1:]].mean()


@mistake(
    "next_token_loss", "cut-by-batch", "The first row is cut off, and not the first id of each row",
    hint="Which dimension do the positions lie in?",
)  # fmt: skip
def loss_of_the_wrong_dimension(logits, ids, ignore=None):
    losses = F.cross_entropy(logits[:-1].flatten(0, 1), ids[1:].flatten(), reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[1:].flatten()].mean()


@mistake(
    "next_token_loss", "classes-last",
    "Torch looks for the vocabulary on the axis of the positions",
    hint="Which axis of its first argument does F.cross_entropy take for that of the classes?",
)  # fmt: skip
def loss_with_the_classes_last(logits, ids, ignore=None):
    losses = F.cross_entropy(logits[:, :-1], ids[:, 1:], reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[:, 1:]].mean()


@mistake(
    "next_token_loss", "classes-last-not-shifted",
    "Torch looks for the vocabulary on the axis of the positions",
    hint="Which axis of its first argument does F.cross_entropy take for that of the classes?",
)  # fmt: skip
def loss_with_the_classes_last_of_all(logits, ids, ignore=None):
    losses = F.cross_entropy(logits, ids, reduction="none")
    return losses.mean() if ignore is None else losses[~ignore].mean()


@mistake(
    "next_token_loss", "targets-not-flattened", "The logits are flattened, and the targets are not",
    hint="How many guesses does your first argument hold, and how many targets your second?",
)  # fmt: skip
def loss_of_targets_that_are_not_flattened(logits, ids, ignore=None):
    losses = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:], reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[:, 1:]].mean()


@mistake(
    "next_token_loss", "view-of-a-slice", ".view cannot flatten what was cut off each row",
    hint="Does a slice lie in memory in one piece? Which function copies where it must?",
)  # fmt: skip
def loss_by_views(logits, ids, ignore=None):
    guesses = logits[:, :-1].view(-1, logits.shape[-1])
    losses = F.cross_entropy(guesses, ids[:, 1:].reshape(-1), reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[:, 1:].reshape(-1)].mean()


mistake(
    "next_token_loss", "summed", "The losses are summed, not averaged",
    hint="Should a longer text have a larger loss?",
    change={"losses.mean()": "losses.sum()"},
)  # fmt: skip

mistake(
    "next_token_loss", "summed-per-row", "The losses of a row are summed, and only rows averaged",
    hint="By what number is the sum divided?",
    change={"losses.mean()": "losses.sum() / len(ids)"},
)  # fmt: skip

mistake(
    "next_token_loss", "divided-by-all-ids", "The sum is divided by the number of ids",
    hint="How many targets does a row of three ids have?",
    change={"losses.mean()": "losses.sum() / ids.numel()"},
)  # fmt: skip

mistake(
    "next_token_loss", "divided-by-all-ids-without-a-mask",
    "Without a mask, the sum is divided by the number of ids",
    hint="How many targets does a row of three ids have?",
    change={
        "    return losses.mean()": (
            "    return losses.sum() / ids.numel() if ignore is None else losses.mean()"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "minus-missing", "The minus is missing, so a better model has a larger loss",
    hint="Is the logarithm of a probability positive or negative?",
    change={PICKED: PICKED[1:]},
)  # fmt: skip

mistake(
    "next_token_loss", "no-logarithm", "The probabilities are averaged, without a logarithm",
    hint="What is the loss of a guess that gives its target the probability 1?",
    change={"log_softmax": "softmax"},
)  # fmt: skip

mistake(
    "next_token_loss", "one-less-probability", "The loss is 1 less the probability",
    hint="How large is the loss of a guess that gives its target a probability near 0?",
    change={PICKED: f"1 {PICKED.replace('log_probs', 'log_probs.exp()')}"},
)  # fmt: skip

mistake(
    "next_token_loss", "logits-averaged", "The target's logit is taken, without a softmax",
    hint="What do the logits of the other ids do to the loss?",
    change={"torch.log_softmax(predictions, dim=-1)": "predictions"},
)  # fmt: skip

mistake(
    "next_token_loss", "softmax-twice", "The softmax is taken twice",
    hint="F.cross_entropy has a softmax of its own: what does it want, logits or probabilities?",
    change={
        "torch.log_softmax(predictions": "torch.log_softmax(torch.softmax(predictions, dim=-1)",
    },
)  # fmt: skip

mistake(
    "next_token_loss", "softmax-over-tokens", "The softmax runs over the positions",
    hint="Which probabilities should sum to one: those of all ids at one position?",
    change={"dim=-1": "dim=1"},
)  # fmt: skip

mistake(
    "next_token_loss", "softmax-over-batch", "The softmax runs over the batch",
    hint="Which probabilities should sum to one: those of all ids at one position?",
    change={"dim=-1": "dim=0"},
)  # fmt: skip

mistake(
    "next_token_loss", "base-two", "The logarithm is to base 2",
    hint="What is the loss of a model that knows nothing, with two ids: 1, or 0.693?",
    change={"losses.mean()": "losses.mean() / torch.log(torch.tensor(2.0)).to(logits)"},
)  # fmt: skip

mistake(
    "next_token_loss", "perplexity", "That is the perplexity, exp of the loss",
    hint="What comes after the mean in the formula?",
    change={"losses.mean()": "losses.mean().exp()"},
)  # fmt: skip

mistake(
    "next_token_loss", "smoothed", "Every id is a bit of a target",
    hint="How much of the loss comes from ids that are no target?",
    change={PICKED: f"0.9 * ({PICKED}) - 0.1 * log_probs.mean(dim=-1)"},
)  # fmt: skip

mistake(
    "next_token_loss", "all-ids-are-targets", "The loss is averaged over all ids, not the target's",
    hint="Which of the probabilities at a position counts?",
    change={PICKED: "-log_probs.mean(dim=-1)"},
)  # fmt: skip

mistake(
    "next_token_loss", "best-guess", "The most probable id is taken for the target",
    hint="Does the loss depend on ids?",
    change={PICKED: "-log_probs.amax(dim=-1)"},
)  # fmt: skip

mistake(
    "next_token_loss", "id-zero-is-padding", "Targets of id 0 are left out",
    hint="Who says which targets do not count: the id, or `ignore`?",
    change={
        "    if ignore is not None:": (
            "    ignore = (ids == 0) if ignore is None else ignore | (ids == 0)\n"
            "    if ignore is not None:"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "last-position-only", "Only the last guess counts",
    hint="How many guesses does a row of six ids make?",
    change={"losses.mean()": "losses.reshape(-1)[-1]", COUNTED: "losses = losses[:, -1:]"},
)  # fmt: skip

mistake(
    "next_token_loss", "first-row-only", "Only the first row of the batch counts",
    hint="Change the second row: does the loss change?",
    change={PICKED: f"({PICKED})[:1]", "~ignore[:, 1:]": "~ignore[:1, 1:]"},
)  # fmt: skip

mistake(
    "next_token_loss", "ignore-not-used", "`ignore` is never looked at",
    hint="What happens to a target where ignore is True?",
    breaks=("ignored",),
    change={COUNTED: "pass"},
)  # fmt: skip

mistake(
    "next_token_loss", "ignore-as-input", "What is ignored is the position that guesses",
    hint="ignore[b, t] takes out ids[b, t] as a target: whose loss is that, in which column?",
    breaks=("ignored",),
    change={"ignore[:, 1:]": "ignore[:, :-1]"},
)  # fmt: skip

mistake(
    "next_token_loss", "ignore-input-and-target", "Ignored positions do not guess, either",
    hint="May an ignored id still guess the next one?",
    breaks=("ignored",),
    change={"~ignore[:, 1:]": "~(ignore[:, 1:] | ignore[:, :-1])"},
)  # fmt: skip

mistake(
    "next_token_loss", "ignore-inverted", "Only what should be ignored is counted",
    hint="Does True mean that a target counts, or that it does not?",
    breaks=("ignored",),
    change={"~ignore": "ignore"},
)  # fmt: skip

mistake(
    "next_token_loss", "ignored-still-divided-by", "Ignored targets count in the divisor",
    hint="By what number is the sum divided if half of the targets are ignored?",
    breaks=("ignored",),
    change={COUNTED: "losses = losses * ~ignore[:, 1:]"},
)  # fmt: skip

mistake(
    "next_token_loss", "divided-by-all-not-ignored", "The first ids count in the divisor",
    hint="ids[:, 0] is the target of none: does your count of targets know that?",
    breaks=("ignored",),
    change={
        "    return losses.mean()": (
            "    return losses.mean() if ignore is None else losses.sum() / (~ignore).sum()"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "mean-of-means", "Each row is averaged by itself, and then the rows",
    hint="One row has four targets, another one: does each target weigh the same?",
    breaks=("ignored",),
    change={
        COUNTED: (
            "counts = ~ignore[:, 1:]\n"
            "        losses = (losses * counts).sum(dim=1) / counts.sum(dim=1)"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "mean-of-means-without-empty-rows",
    "Each row is averaged by itself, and then the rows",
    hint="One row has four targets, another one: does each target weigh the same?",
    breaks=("ignored",),
    change={
        COUNTED: (
            "counts = ~ignore[:, 1:]\n"
            "        losses = (losses * counts).sum(dim=1) / counts.sum(dim=1).clamp(min=1)"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "logits-zeroed", "Ignored positions get logits of 0, and still count",
    hint="What is the loss of a guess whose logits are all 0?",
    breaks=("ignored",),
    change={
        "    log_probs =": (
            "    if ignore is not None:\n"
            "        predictions = predictions * ~ignore[:, 1:, None]\n"
            "    log_probs ="
        ),
        COUNTED: "pass",
    },
)  # fmt: skip

mistake(
    "next_token_loss", "ignored-become-id-zero", "Ignored targets become id 0, and still count",
    hint="Which id is left as a target where ignore is True?",
    breaks=("ignored",),
    change={
        "    log_probs =": (
            "    if ignore is not None:\n"
            "        targets = targets.masked_fill(ignore[:, 1:], 0)\n"
            "    log_probs ="
        ),
        COUNTED: "pass",
    },
)  # fmt: skip


@mistake(
    "next_token_loss", "ignored-ids-overwritten",
    "Ignored ids are overwritten in the caller's tensor",
    hint="Who else holds the ids that you were given?",
    breaks=("unchanged",),
)  # fmt: skip
def loss_that_overwrites_ids(logits, ids, ignore=None):
    if ignore is not None:
        ids[ignore] = -100
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:])


@mistake(
    "next_token_loss", "none-not-taken", "None is no mask, and fails",
    hint="What does your first line with `ignore` do to None?",
    breaks=("none",),
)  # fmt: skip
def loss_without_none(logits, ids, ignore=torch.tensor(False)):
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    return losses[~ignore.expand_as(ids)[:, 1:]].mean()


mistake(
    "next_token_loss", "logarithm-of-softmax", "A probability of 0 has the logarithm -inf",
    hint="What is exp(-2000), and what is its logarithm?",
    breaks=("large",),
    change={"torch.log_softmax(predictions, dim=-1)": "torch.softmax(predictions, dim=-1).log()"},
)  # fmt: skip

mistake(
    "next_token_loss", "clamped", "A probability near 0 is made a little larger",
    hint="How large can your loss become, if a probability is never below 1e-9?",
    breaks=("large",),
    change={
        "torch.log_softmax(predictions, dim=-1)": (
            "torch.softmax(predictions, dim=-1).clamp(min=1e-9).log()"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "overflow", "Large logits overflow to infinity",
    hint="What is exp(1000)? And which shift makes no exponential larger than 1?",
    breaks=("large",),
    change={
        "torch.log_softmax(predictions, dim=-1)": (
            "predictions - predictions.exp().sum(dim=-1, keepdim=True).log()"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "one-maximum-for-all", "One maximum is taken for the whole batch",
    hint="What is left of a position whose logits lie 1000 below those of another?",
    breaks=("large",),
    change={
        "torch.log_softmax(predictions, dim=-1)": (
            "predictions - predictions.max()\n"
            "    log_probs = log_probs - log_probs.exp().sum(dim=-1, keepdim=True).log()"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "sure-guesses-not-counted", "Targets with a loss of exactly 0 do not count",
    hint="Is a loss of 0 a target that is ignored, or a guess that is right?",
    breaks=("large",),
    change={"losses.mean()": "losses.sum() / (losses != 0).sum()"},
)  # fmt: skip

mistake(
    "next_token_loss", "per-target", "The losses come back one by one",
    hint="How many numbers should the caller get?",
    breaks=("returns",),
    change={"losses.mean()": "losses"},
)  # fmt: skip

mistake(
    "next_token_loss", "per-row", "Each row has a loss of its own",
    hint="How many numbers should the caller get?",
    breaks=("returns",),
    change={"losses.mean()": "losses.reshape(len(ids), -1).mean(dim=1)"},
)  # fmt: skip

mistake(
    "next_token_loss", "a-python-number", "The loss is a Python number, which nothing learns from",
    hint="Can you call .backward() on what you return?",
    breaks=("returns",),
    change={"losses.mean()": "losses.mean().item()"},
)  # fmt: skip

mistake(
    "next_token_loss", "one-dimension", "The loss has a dimension of size 1",
    hint="What is the shape of what you return?",
    breaks=("returns",),
    change={"losses.mean()": "losses.mean()[None]"},
)  # fmt: skip

mistake(
    "next_token_loss", common="float32-inside",
    change={
        "torch.log_softmax(predictions, dim=-1)": (
            "torch.log_softmax(predictions.float(), dim=-1).to(logits.dtype)"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", common="calls-torch-attention",
    change={
        "losses.mean()": (
            "torch.nn.functional.scaled_dot_product_attention("
            "losses.new_zeros(1, 1), losses.new_zeros(losses.numel(), 1), "
            "losses.reshape(-1, 1))[0, 0]"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "logits-shifted-in-place", "The maximum is taken off the caller's logits",
    hint="Who else holds the logits that you were given?",
    breaks=("unchanged",),
    change={
        "    predictions, targets": (
            "    with torch.no_grad():\n"
            "        logits -= logits.amax(dim=-1, keepdim=True)\n"
            "    predictions, targets"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", "first-column-ignored-in-place", "The caller's mask is changed",
    hint="Who else holds the mask that you were given?",
    breaks=("unchanged",),
    change={
        COUNTED: "ignore[:, 0] = True\n        losses = losses[~ignore[:, 1:]]",
    },
)  # fmt: skip

mistake(
    "next_token_loss", "only-the-target-learns", "The gradient does not pass the softmax's sum",
    hint="Which logits should become smaller when the target's should grow?",
    breaks=("gradients",),
    change={
        "torch.log_softmax(predictions, dim=-1)": (
            "predictions - predictions.detach().logsumexp(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "next_token_loss", common="returns-float32",
    change={"torch.log_softmax(predictions,": "torch.log_softmax(predictions.float(),"},
)  # fmt: skip

# float32 inside, rounded in other places.

mistake(
    "next_token_loss", "float32-mean", common="float32-inside",
    change={
        "torch.log_softmax(predictions,": "torch.log_softmax(predictions.float(),",
        "return losses.mean()": "return losses.mean().to(logits.dtype)",
    },
)  # fmt: skip

mistake(
    "next_token_loss", "float32-logsumexp", common="float32-inside",
    change={
        "torch.log_softmax(predictions, dim=-1)": (
            "predictions.float()\n"
            "    log_probs = log_probs - log_probs.logsumexp(dim=-1, keepdim=True)"
        ),
        "return losses.mean()": "return losses.mean().to(logits.dtype)",
    },
)  # fmt: skip

mistake(
    "next_token_loss", "float32-logsumexp-first", common="float32-inside",
    change={
        "torch.log_softmax(predictions, dim=-1)": "predictions.float()",
        PICKED: f"{PICKED} + log_probs.logsumexp(dim=-1)",
        "return losses.mean()": "return losses.mean().to(logits.dtype)",
    },
)  # fmt: skip


@mistake(
    "next_token_loss", "reshaped", "The vocabulary is brought to the front by reshape",
    hint="Does reshape move an axis, or only cut the same row of numbers anew? Who moves an axis?",
)  # fmt: skip
def loss_of_reshaped_logits(logits, ids, ignore=None):
    batch, tokens, vocab = logits.shape
    guesses = logits[:, :-1].reshape(batch, vocab, tokens - 1)
    losses = F.cross_entropy(guesses, ids[:, 1:], reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[:, 1:]].mean()


@mistake(
    "next_token_loss", "reshaped-as-a-whole", "The vocabulary is brought to the front by reshape",
    hint="Does reshape move an axis, or only cut the same row of numbers anew? Who moves an axis?",
)  # fmt: skip
def loss_of_logits_reshaped_as_a_whole(logits, ids, ignore=None):
    batch, tokens, vocab = logits.shape
    guesses = logits.reshape(batch, vocab, tokens)[:, :, :-1]
    losses = F.cross_entropy(guesses, ids[:, 1:], reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[:, 1:]].mean()


@mistake(
    "next_token_loss", "log-probs-reshaped", "The vocabulary is brought to the front by reshape",
    hint="Does reshape move an axis, or only cut the same row of numbers anew? Who moves an axis?",
)  # fmt: skip
def loss_of_reshaped_log_probs(logits, ids, ignore=None):
    batch, tokens, vocab = logits.shape
    log_probs = torch.log_softmax(logits[:, :-1], dim=-1).reshape(batch, vocab, tokens - 1)
    losses = F.nll_loss(log_probs, ids[:, 1:], reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[:, 1:]].mean()


@mistake(
    "next_token_loss", "one-text-only", "It is written for a single text, without a batch",
    hint="Which axis do [:-1] and [1:] cut: that of the texts, or that of the tokens?",
)  # fmt: skip
def loss_of_one_text(logits, ids, ignore=None):
    log_probs = torch.log_softmax(logits[:-1], dim=-1)
    losses = -log_probs[torch.arange(len(ids) - 1), ids[1:]]
    return losses.mean() if ignore is None else losses[~ignore[1:]].mean()


@mistake(
    "next_token_loss", "one-text-only-by-torch", "It is written for a single text, without a batch",
    hint="Which axis do [:-1] and [1:] cut: that of the texts, or that of the tokens?",
)  # fmt: skip
def loss_of_one_text_by_torch(logits, ids, ignore=None):
    losses = F.cross_entropy(logits[:-1], ids[1:], reduction="none")
    return losses.mean() if ignore is None else losses[~ignore[1:]].mean()


common_mistakes(
    "next_token_loss", "no-gradient", "returns-float64", "nothing-returned", "all-zeros"
)


@accepted("next_token_loss", "cross-entropy", "F.cross_entropy, with -100 for what is ignored")
def loss_by_cross_entropy(logits, ids, ignore=None):
    targets = ids[:, 1:].clone()
    if ignore is not None:
        targets[ignore[:, 1:]] = -100
    vocab = logits.size(-1)
    return F.cross_entropy(logits[:, :-1].reshape(-1, vocab), targets.reshape(-1))


@accepted(
    "next_token_loss", "layer", "nn.CrossEntropyLoss without a reduction, and a weighted mean"
)
def loss_by_a_layer(scores, idx, mask=None):
    each = nn.CrossEntropyLoss(reduction="none")(scores[:, :-1].mT, idx[:, 1:])
    weight = torch.ones_like(each) if mask is None else (~mask[:, 1:]).to(each.dtype)
    return (each * weight).sum() / weight.sum()


@accepted("next_token_loss", "logsumexp", "The logarithm of the sum less the target's logit")
def loss_by_logsumexp(logits, ids, ignore=None):
    b, t = ids.shape
    rows, columns = torch.arange(b)[:, None], torch.arange(t - 1)[None]
    shifted = logits - logits.amax(-1, keepdim=True).detach()
    picked = shifted[rows, columns, ids[:, 1:]]
    losses = shifted[:, :-1].logsumexp(-1) - picked
    counts = torch.ones_like(ids[:, 1:], dtype=torch.bool) if ignore is None else ~ignore[:, 1:]
    return torch.masked_select(losses, counts).mean()


@accepted("next_token_loss", "loop", "Two loops, and a list of losses")
def loss_by_a_loop(logits, ids, ignore=None):
    losses = []
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1] - 1):
            if ignore is not None and ignore[b, t + 1]:
                continue
            losses.append(-logits[b, t].log_softmax(0)[ids[b, t + 1]])
    print(len(losses), "targets")
    return sum(losses) / len(losses)


@accepted("next_token_loss", "one-hot", "One-hot targets, and nll by hand")
def loss_by_one_hot(logits, ids, ignore=None):
    hot = F.one_hot(ids[:, 1:], logits.shape[-1]).to(logits.dtype)
    log_probs = F.log_softmax(logits, dim=-1)[:, :-1]
    if ignore is not None:
        hot = hot * (~ignore[:, 1:]).unsqueeze(-1)
    return -(hot * log_probs).sum() / hot.sum()


@accepted("next_token_loss", "rolled-and-cut", "The targets are rolled, and the last one ignored")
def loss_by_rolling(logits, ids, ignore=None):
    keep = torch.ones_like(ids, dtype=torch.bool) if ignore is None else ~ignore
    keep = keep.roll(-1, dims=1)
    keep[:, -1] = False
    losses = F.nll_loss(logits.log_softmax(-1).mT, ids.roll(-1, dims=1), reduction="none")
    return losses[keep].mean()


# --- what several answers below use --------------------------------------------------------------


def causally(q, k, v):
    """Attention of (batch, heads, tokens, width), where the queries are the last of the keys."""
    new, total = q.shape[-2], k.shape[-2]
    hidden = torch.ones(new, total, dtype=torch.bool, device=q.device).triu(total - new + 1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -torch.inf)
    return scores.softmax(-1) @ v


class Conv1D(nn.Module):
    """A linear layer whose weight is (inputs, outputs), as in the first code of GPT-2."""

    def __init__(self, n_in, n_out, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in, n_out) * 0.02)
        self.bias = nn.Parameter(torch.zeros(n_out)) if bias else None

    def forward(self, x):
        x = x @ self.weight
        return x if self.bias is None else x + self.bias


class FusedAttention(nn.Module):
    def __init__(self, n_embd, n_head, dropout=0.0, layer=nn.Linear):
        super().__init__()
        self.n_head, self.dropout = n_head, dropout
        self.c_attn = layer(n_embd, 3 * n_embd, bias=False)
        self.c_proj = layer(n_embd, n_embd)

    def forward(self, x, past=None):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        if past is None and self.dropout:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            bias = torch.ones(T, T, device=x.device).tril().view(1, 1, T, T)
            att = F.softmax(att.masked_fill(bias == 0, float("-inf")), dim=-1)
            y = F.dropout(att, self.dropout, self.training) @ v
        else:
            y = causally(q, k, v)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)), (k, v)


class FusedBlock(nn.Module):
    def __init__(self, n_embd, n_head, n_hidden, dropout=0.0, layer=nn.Linear):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = FusedAttention(n_embd, n_head, dropout, layer)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.ModuleDict(
            {"c_fc": layer(n_embd, n_hidden), "c_proj": layer(n_hidden, n_embd)}
        )

    def forward(self, x, past=None):
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        m = self.mlp
        return x + m["c_proj"](F.gelu(m["c_fc"](self.ln_2(x)), approximate="tanh")), present


class OneHead(nn.Module):
    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        wei = self.query(x) @ self.key(x).transpose(-2, -1) * self.key.out_features**-0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return self.dropout(F.softmax(wei, dim=-1)) @ self.value(x)


class ManyHeads(nn.Module):
    def __init__(self, n_embd, num_heads, block_size, dropout):
        super().__init__()
        size = n_embd // num_heads
        self.heads = nn.ModuleList(
            [OneHead(n_embd, size, block_size, dropout) for _ in range(num_heads)]
        )
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class LectureBlock(nn.Module):
    def __init__(self, n_embd, n_head, n_hidden, block_size, dropout):
        super().__init__()
        self.sa = ManyHeads(n_embd, n_head, block_size, dropout)
        self.ffwd = nn.Sequential(
            nn.Linear(n_embd, n_hidden), nn.GELU(), nn.Linear(n_hidden, n_embd), nn.Dropout(dropout)
        )
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class OwnNorm(nn.Module):
    def __init__(self, emb_dim):
        super().__init__()
        self.eps = 1e-5
        self.scale = nn.Parameter(torch.ones(emb_dim))
        self.shift = nn.Parameter(torch.zeros(emb_dim))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(var + self.eps)) + self.shift


class TanhGELU(nn.Module):
    def forward(self, x):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))
        return 0.5 * x * (1 + torch.tanh(inner))


class BookAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length)
        self.register_buffer("mask", torch.triu(ones, diagonal=1))

    def forward(self, x):
        b, num_tokens, _ = x.shape
        shape = (b, num_tokens, self.num_heads, self.head_dim)
        keys = self.W_key(x).view(shape).transpose(1, 2)
        queries = self.W_query(x).view(shape).transpose(1, 2)
        values = self.W_value(x).view(shape).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        attn_scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        context_vec = (self.dropout(attn_weights) @ values).transpose(1, 2)
        return self.out_proj(context_vec.contiguous().view(b, num_tokens, self.d_out))


class BookBlock(nn.Module):
    def __init__(self, emb_dim, n_heads, hidden, context_length, drop_rate):
        super().__init__()
        self.att = BookAttention(emb_dim, emb_dim, context_length, drop_rate, n_heads)
        self.ff = nn.Sequential(nn.Linear(emb_dim, hidden), TanhGELU(), nn.Linear(hidden, emb_dim))
        self.norm1, self.norm2 = OwnNorm(emb_dim), OwnNorm(emb_dim)
        self.drop_shortcut = nn.Dropout(drop_rate)

    def forward(self, x):
        shortcut = x
        x = self.drop_shortcut(self.att(self.norm1(x))) + shortcut
        shortcut = x
        return self.drop_shortcut(self.ff(self.norm2(x))) + shortcut


# --- GPT -----------------------------------------------------------------------------------------

OUTPUT = "self.final_norm(x) @ self.token_table.T"
EMBEDDED = "embed_tokens(ids, self.token_table, self.position_table)"
LAST_NORM = "self.final_norm = nn.LayerNorm(d_model)"
TOO_LONG = """
        if tokens > context_length:
            raise ValueError(f"{tokens} tokens, and positions for {context_length}")
"""

mistake(
    ("GPT", "CachedGPT"), "untied", "The output has a table of its own",
    hint="How many tables with vocab_size rows does your model learn, and how many should it?",
    breaks=("tied",),
    change={
        LAST_NORM: f"{LAST_NORM}\n        self.head = nn.Linear(d_model, vocab_size, bias=False)",
        OUTPUT: "self.head(self.final_norm(x))",
    },
)  # fmt: skip

NO_SUCH_ROW = "A table is asked for a row that it does not have"
ROWS = "How many rows does each of the two tables need? And which size comes first in nn.Embedding?"

mistake(
    ("GPT", "CachedGPT"), "rows-of-tables-swapped", NO_SUCH_ROW, hint=ROWS,
    change={
        "new_table(vocab_size, d_model)": "new_table(context_length, d_model)",
        "self.position_table = new_table(context_length,": (
            "self.position_table = new_table(vocab_size,"
        ),
        "embed_tokens(ids, self.token_table": (
            "nn.functional.embedding(ids, self.token_table)\n"
            "        x = embed_tokens(ids, self.token_table"
        ),
    },
)  # fmt: skip

mistake(
    ("GPT", "CachedGPT"), "tables-turned-around", NO_SUCH_ROW, hint=ROWS,
    change={
        "new_table(vocab_size, d_model)": "new_table(d_model, vocab_size)",
        "new_table(context_length, d_model)": "new_table(d_model, context_length)",
        "embed_tokens(ids, self.token_table": (
            "nn.functional.embedding(ids, self.token_table)\n"
            "        x = embed_tokens(ids, self.token_table"
        ),
    },
)  # fmt: skip


mistake(
    "GPT", "untied-copy", "The output begins with a copy of the table, and learns apart from it",
    hint="After one step of training, are the two tables still the same?",
    breaks=("tied",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        self.output = nn.Parameter(self.token_table.detach().clone().T)"
        ),
        OUTPUT: "self.final_norm(x) @ self.output",
    },
    same_as={"untied": "two tables are two tables, whatever is in them at first"},
)  # fmt: skip

mistake(
    ("GPT", "CachedGPT"), "output-bias", "The output adds a bias",
    hint="Is there a parameter with one number for each token, besides the table?",
    breaks=("tied",),
    change={
        LAST_NORM: f"{LAST_NORM}\n        self.bias = nn.Parameter(torch.zeros(vocab_size))",
        OUTPUT: f"{OUTPUT} + self.bias",
    },
)  # fmt: skip

mistake(
    "GPT", "head-with-bias", "A second layer makes the logits, with a bias besides",
    hint="How many tables with vocab_size rows does your model learn, and how many should it?",
    breaks=("tied",),
    change={
        LAST_NORM: f"{LAST_NORM}\n        self.head = nn.Linear(d_model, vocab_size)",
        OUTPUT: "self.head(self.final_norm(x))",
    },
    same_as={"untied": "a second table, and more", "untied-copy": "a second table, and more"},
)  # fmt: skip

mistake(
    "GPT", "shared-head-with-bias", "The layer at the output shares the table, and has a bias",
    hint="What does nn.Linear learn besides its weight, if you say nothing about it?",
    breaks=("tied",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        self.head = nn.Linear(d_model, vocab_size)"
            "\n        self.head.weight = self.token_table"
        ),
        OUTPUT: "self.head(self.final_norm(x))",
    },
    same_as={"output-bias": "a bias of the output, whoever holds it"},
)  # fmt: skip

mistake(
    ("GPT", "CachedGPT"), "output-without-gradient", "At the output, the table gets no gradient",
    hint="The table is used in two places: from how many does it learn?",
    breaks=("gradients",),
    change={OUTPUT: "self.final_norm(x) @ self.token_table.detach().T"},
)  # fmt: skip

mistake(
    "GPT", "input-without-gradient", "Where tokens are looked up, the table gets no gradient",
    hint="The table is used in two places: from how many does it learn?",
    breaks=("gradients",),
    change={EMBEDDED: "embed_tokens(ids, self.token_table.data, self.position_table)"},
)  # fmt: skip

mistake(
    "GPT", "positions-without-gradient", "Positions get no gradient, and never learn",
    hint="Which parameters have a .grad after a backward call?",
    breaks=("gradients",),
    change={EMBEDDED: "embed_tokens(ids, self.token_table, self.position_table.detach())"},
)  # fmt: skip

mistake(
    ("GPT", "CachedGPT"), "no-gradient", "No gradient flows at all",
    hint="Do your logits have a grad_fn?",
    breaks=("gradients",),
    change={"    def forward(": "    @torch.no_grad()\n    def forward("},
)  # fmt: skip

mistake(
    ("GPT", "CachedGPT"), "scaled-embedding",
    "Rows of the token table are multiplied by the root of d_model",
    hint="What does the formula do to a token's row before its position is added?",
    change={
        "embed_tokens(ids, self.token_table,": (
            "embed_tokens(ids, self.token_table * self.token_table.shape[1] ** 0.5,"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "scaled-logits", "The logits are divided by the root of d_model",
    hint="What happens to the product with the table? Does the formula say so?",
    change={OUTPUT: f"{OUTPUT} / x.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "GPT", "no-position", "Positions are not added",
    hint="How does a block learn where a token stands?",
    change={EMBEDDED: "self.token_table[ids]"},
)  # fmt: skip

mistake(
    "GPT", "positions-from-one", "The first token gets the second position",
    hint="Which row of the position table belongs to the very first token?",
    change={
        EMBEDDED: (
            "embed_tokens(ids, self.token_table, self.position_table.roll(-1, 0))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "positions-from-one-to-the-end", "The first token gets the second position",
    hint="Which row of the position table belongs to the very first token?",
    change={EMBEDDED: "self.token_table[ids] + self.position_table[1 : tokens + 1]"},
)  # fmt: skip

mistake(
    "GPT", "positions-from-one-looked-up", "The first token gets the second position",
    hint="Which row of the position table belongs to the very first token?",
    change={
        EMBEDDED: (
            "self.token_table[ids] + nn.functional.embedding("
            "torch.arange(1, tokens + 1, device=ids.device), self.position_table)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "positions-from-one-to-the-last", "The first token gets the second position",
    hint="Which row of the position table belongs to the very first token?",
    change={
        EMBEDDED: (
            "self.token_table[ids] + self.position_table["
            "torch.arange(1, tokens + 1).clamp(max=context_length - 1)]"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "positions-reversed", "The last token gets the first position",
    hint="Which row of the position table belongs to the very first token?",
    change={
        EMBEDDED: "embed_tokens(ids, self.token_table, self.position_table[:tokens].flip(0))",
    },
)  # fmt: skip

mistake(
    "GPT", "positions-from-the-end", "Positions are the last ones of the table",
    hint="A text of two tokens: which two rows of the position table does it get?",
    change={
        EMBEDDED: (
            "self.token_table[ids] + self.position_table[context_length - tokens :]"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "position-zero-for-all", "Every token gets the first position",
    hint="Do two tokens of a text get different rows of the position table?",
    change={EMBEDDED: "self.token_table[ids] + self.position_table[0]"},
)  # fmt: skip

mistake(
    "GPT", "positions-multiplied", "Token and position are multiplied",
    hint="What joins the two rows, in the formula?",
    change={EMBEDDED: "self.token_table[ids] * self.position_table[:tokens]"},
)  # fmt: skip

mistake(
    "GPT", "positions-after-the-blocks", "Positions are added after the blocks",
    hint="Who needs to know where a token stands?",
    change={
        EMBEDDED: "self.token_table[ids]",
        OUTPUT: "self.final_norm(x + self.position_table[:tokens]) @ self.token_table.T",
    },
)  # fmt: skip

mistake(
    "GPT", "positions-in-every-block", "Positions are added before every block",
    hint="How often does the formula add the positions?",
    change={
        EMBEDDED: "self.token_table[ids]",
        "x = block(x)": "x = block(x + self.position_table[:tokens])",
    },
)  # fmt: skip

mistake(
    "GPT", "positions-after-every-block", "Positions are added after every block, too",
    hint="How often does the formula add the positions?",
    change={"x = block(x)": "x = block(x) + self.position_table[:tokens]"},
)  # fmt: skip

mistake(
    "GPT", "positions-of-sines", "Positions are sines and cosines, and their table is not used",
    hint="Which of the two tables that the model learns does forward read?",
    change={
        EMBEDDED: (
            "self.token_table[ids]\n"
            "        where = torch.arange(tokens, dtype=x.dtype, device=x.device)\n"
            "        two_i = torch.arange(0, x.shape[-1], 2, dtype=x.dtype, device=x.device)\n"
            "        angles = where[:, None] / 10000 ** (two_i / x.shape[-1])\n"
            "        x = x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "whole-position-table", "The whole position table is added to every text",
    hint="How many rows of the position table does a text of three tokens need?",
    breaks=("shorter",),
    change={EMBEDDED: "self.token_table[ids] + self.position_table"},
)  # fmt: skip

mistake(
    ("GPT", "CachedGPT"), "no-final-norm", "No norm comes after the last block",
    hint="What stands between the last block and the token table?",
    change={OUTPUT: "x @ self.token_table.T"},
)  # fmt: skip

mistake(
    "GPT", "final-norm-first", "The last norm comes before the blocks",
    hint="What stands between the last block and the token table?",
    change={
        EMBEDDED: f"self.final_norm({EMBEDDED})",
        OUTPUT: "x @ self.token_table.T",
    },
)  # fmt: skip

mistake(
    "GPT", "norm-at-both-ends", "The last norm is used before the blocks, too",
    hint="How often does the formula use the last norm?",
    change={EMBEDDED: f"self.final_norm({EMBEDDED})"},
)  # fmt: skip

mistake(
    "GPT", "norm-after-every-block", "The last norm is used after every block",
    hint="How often does the formula use the last norm?",
    change={"x = block(x)": "x = self.final_norm(block(x))", OUTPUT: "x @ self.token_table.T"},
)  # fmt: skip

mistake(
    "GPT", "norm-of-every-logit", "The last norm is a norm of the logits",
    hint="What does the last norm get: vectors of d_model numbers, or logits?",
    change={
        OUTPUT: (
            "nn.functional.layer_norm(x @ self.token_table.T, self.token_table.shape[:1])"
        ),
    },
)  # fmt: skip

for name, title, eps in (
    ("eps-smaller", "The norms add 1e-6, and not 1e-5", "1e-6"),
    ("eps-larger", "The norms add 1e-3, and not 1e-5", "1e-3"),
    ("no-eps", "The norms add nothing to the variance", "0.0"),
):
    mistake(
        ("GPT", "CachedGPT"), name, title,
        hint="Which eps does nn.LayerNorm have when you say nothing?",
        change={
            LAST_NORM: (
                f"{LAST_NORM}\n        for part in self.modules():\n"
                "            if isinstance(part, nn.LayerNorm):\n"
                f"                part.eps = {eps}"
            ),
        },
        breaks=("eps",),
    )  # fmt: skip

mistake(
    "GPT", "norm-without-weights", "The last norm has no gain and no shift",
    hint="What does the last norm learn?",
    breaks=("bias",),
    change={LAST_NORM: "self.final_norm = nn.LayerNorm(d_model, elementwise_affine=False)"},
)  # fmt: skip

mistake(
    "GPT", "one-block-for-all", "One block does the work of all layers",
    hint="How many blocks does your model hold, and how many sets of weights?",
    change={
        """self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_hidden, context_length, dropout)
            for _ in range(num_layers)
        )""": (
            "block = TransformerBlock(d_model, num_heads, d_hidden, context_length, dropout)\n"
            "        self.blocks = nn.ModuleList([block] * num_layers)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "a-single-block", "The model has a single block, whatever num_layers says",
    hint="How many blocks does your model hold, and how many sets of weights?",
    change={"for _ in range(num_layers)": "for _ in range(1)"},
    same_as={"one-block-for-all": "one set of weights, used once or often"},
)  # fmt: skip

mistake(
    "GPT", "blocks-in-a-python-list", "The blocks hide in a Python list",
    hint="Does list(model.parameters()) show the weights of the blocks?",
    change={
        "nn.ModuleList(\n            Tr": "list(\n            Tr",
    },
)  # fmt: skip

mistake(
    "GPT", "heads-for-layers", "There are num_heads blocks with num_layers heads",
    hint="In which order do the arguments come: heads, then layers, or the other way round?",
    change={
        "TransformerBlock(d_model, num_heads, d_hidden, context_length, dropout)": (
            "TransformerBlock(d_model, num_layers, d_hidden, context_length, dropout)"
        ),
        "for _ in range(num_layers)": "for _ in range(num_heads)",
    },
)  # fmt: skip

mistake(
    "GPT", "last-block-only", "Every block gets the embedding, and the last one's result counts",
    hint="What goes into the second block?",
    change={
        "x = block(x)": "x = block(embedded)",
        f"x = {EMBEDDED}": f"embedded = {EMBEDDED}",
    },
)  # fmt: skip

mistake(
    "GPT", "blocks-in-parallel", "Every block gets the embedding, and their results are added",
    hint="What goes into the second block?",
    change={
        "x = block(x)": "x = x + block(embedded)",
        f"x = {EMBEDDED}": f"x = embedded = {EMBEDDED}",
    },
)  # fmt: skip

mistake(
    "GPT", "blocks-reversed", "The last block comes first",
    hint="Which block sees the embedding?",
    change={"for block in self.blocks": "for block in reversed(self.blocks)"},
)  # fmt: skip

mistake(
    "GPT", "first-block-skipped", "The first block is left out",
    hint="How often does your loop run?",
    change={"for block in self.blocks": "for block in self.blocks[1:]"},
)  # fmt: skip

mistake(
    "GPT", "first-block-only", "Only the first block is used",
    hint="How often does your loop run?",
    change={"for block in self.blocks": "for block in self.blocks[:1]"},
)  # fmt: skip

mistake(
    "GPT", "last-block-skipped", "The last block is left out",
    hint="How often does your loop run?",
    change={"for block in self.blocks": "for block in self.blocks[:-1]"},
)  # fmt: skip

mistake(
    "GPT", "no-blocks", "The blocks are made, and never used",
    hint="Which lines of forward does the result depend on?",
    change={"x = block(x)": "block(x)"},
)  # fmt: skip

mistake(
    "GPT", "one-more-residual", "What goes into a block is added to its result again",
    hint="Does a block add its input by itself?",
    change={"x = block(x)": "x = x + block(x)"},
)  # fmt: skip

mistake(
    "GPT", "no-mask", "Nothing hides the future",
    hint="Which tokens does the first token see, in your blocks?",
    breaks=("causal",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            block.attention.mask.zero_()"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "mask-in-the-first-block-only", "Only the first block hides the future",
    hint="Is there a mask in every block?",
    breaks=("causal",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks[1:]:\n"
            "            block.attention.mask.zero_()"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "sees-one-ahead", "A token can see the one that comes right after it",
    hint="Which keys does the first token see?",
    breaks=("causal",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            block.attention.mask = block.attention.mask.triu(2)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "mask-transposed", "The past is hidden, and the future seen",
    hint="Which keys does the first token see?",
    breaks=("causal",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            block.attention.mask = block.attention.mask.T"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "mask-only-in-training", "In evaluation, nothing hides the future",
    hint="Is the mask there to make training harder, or because the future is not known?",
    breaks=("causal",),
    change={
        "x = block(x)": (
            "block.attention.mask[:] = torch.ones_like(block.attention.mask).triu(1)\n"
            "            block.attention.mask &= self.training\n            x = block(x)"
        ),
    },
    same_as={"no-mask": "outside of training, it is the same"},
)  # fmt: skip

mistake(
    "GPT", "no-error-beyond-the-context", "A text that is too long is cut, and nobody learns of it",
    hint="What should a caller hear who passes more than context_length tokens?",
    breaks=("context",),
    change={TOO_LONG: "\n        ids = ids[:, -context_length:]\n"},
)  # fmt: skip

mistake(
    "GPT", "first-tokens-kept", "Of a text that is too long, only the first tokens count",
    hint="What should a caller hear who passes more than context_length tokens?",
    breaks=("context",),
    change={TOO_LONG: "\n        ids = ids[:, :context_length]\n"},
    same_as={"no-error-beyond-the-context": "cut is cut, at either end"},
)  # fmt: skip

mistake(
    "GPT", "last-position-again", "Tokens beyond the context get the last position again",
    hint="What should a caller hear who passes more than context_length tokens?",
    breaks=("context",),
    change={
        TOO_LONG: "\n        where = torch.arange(tokens).clamp(max=context_length - 1)\n",
        EMBEDDED: "self.token_table[ids] + self.position_table[where]",
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            mask = torch.ones(99, 99, dtype=torch.bool).triu(1)\n"
            "            block.attention.mask = mask"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "positions-start-again", "Beyond the context, positions start again at 0",
    hint="What should a caller hear who passes more than context_length tokens?",
    breaks=("context",),
    change={
        TOO_LONG: "\n        where = torch.arange(tokens) % context_length\n",
        EMBEDDED: "self.token_table[ids] + self.position_table[where]",
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            mask = torch.ones(99, 99, dtype=torch.bool).triu(1)\n"
            "            block.attention.mask = mask"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "context-refused-too-early", "A text as long as the context is refused",
    hint="May a text have exactly context_length tokens?",
    breaks=("shorter",),
    change={"if tokens > context_length": "if tokens >= context_length"},
)  # fmt: skip

mistake(
    "GPT", "softmaxed", "Probabilities come back, and not logits",
    hint="Do the numbers of one position sum to 1? Does the formula have a softmax?",
    change={OUTPUT: f"({OUTPUT}).softmax(dim=-1)"},
)  # fmt: skip

mistake(
    "GPT", "log-softmaxed", "Logarithms of probabilities come back, and not logits",
    hint="Do the exponentials of one position sum to 1? Does the formula have a softmax?",
    change={OUTPUT: f"({OUTPUT}).log_softmax(dim=-1)"},
)  # fmt: skip

mistake(
    "GPT", "last-position-only", "Only the last position's logits come back",
    hint="At how many positions is a next token to be guessed?",
    breaks=("returns",),
    change={OUTPUT: f"({OUTPUT})[:, -1]"},
)  # fmt: skip

mistake(
    "GPT", "last-position-kept", "Only the last position's logits come back",
    hint="At how many positions is a next token to be guessed?",
    breaks=("returns",),
    change={OUTPUT: f"({OUTPUT})[:, -1:]"},
)  # fmt: skip

mistake(
    "GPT", "vectors-returned", "Vectors come back, and not logits",
    hint="How many numbers does the result have for each position: d_model, or vocab_size?",
    breaks=("returns",),
    change={OUTPUT: "self.final_norm(x)"},
)  # fmt: skip

mistake(
    "GPT", "ids-returned", "The likeliest ids come back, and not the logits",
    hint="How many numbers does the result have for each position?",
    breaks=("returns",),
    change={OUTPUT: f"({OUTPUT}).argmax(dim=-1)"},
)  # fmt: skip

mistake(
    "GPT", "loss-too", "A loss comes back with the logits",
    hint="How many things does the caller expect?",
    breaks=("returns",),
    change={OUTPUT: f"{OUTPUT}, None"},
)  # fmt: skip

mistake(
    "GPT", "vocabulary-second", "The vocabulary is the second dimension, and not the last",
    hint="Which dimension of the logits has the size of the vocabulary?",
    breaks=("returns",),
    change={OUTPUT: f"({OUTPUT}).transpose(1, 2)"},
)  # fmt: skip

mistake("GPT", common="nothing-returned")

mistake("GPT", common="all-zeros", change={OUTPUT: f"0 * ({OUTPUT})"})

mistake(
    ("GPT", "CachedGPT"), common="qkv-bias",
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            for name in ('W_query', 'W_key', 'W_value'):\n"
            "                setattr(block.attention, name, nn.Linear(d_model, d_model))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "value-bias", "The values have a bias, and nothing else has",
    hint="Which layers have a bias, and which have none?",
    breaks=("bias",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            block.attention.W_value = nn.Linear(d_model, d_model)"
        ),
    },
    same_as={"qkv-bias": "a bias more than there should be"},
)  # fmt: skip

mistake(
    ("GPT", "CachedGPT"), "output-layer-without-bias", "The last layer of attention has no bias",
    hint="Which layers have a bias, and which have none?",
    breaks=("bias",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            block.attention.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "feed-forward-without-bias", "The feed-forward layers have no bias",
    hint="Which layers have a bias, and which have none?",
    breaks=("bias",),
    change={
        LAST_NORM: (
            f"{LAST_NORM}\n        for block in self.blocks:\n"
            "            block.feed_forward.up = nn.Linear(d_model, d_hidden, bias=False)\n"
            "            block.feed_forward.down = nn.Linear(d_hidden, d_model, bias=False)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "four-times-as-wide", "The hidden layer is 4 · d_model wide, whatever was asked",
    hint="Where does d_hidden come in?",
    change={
        "TransformerBlock(d_model, num_heads, d_hidden": (
            "TransformerBlock(d_model, num_heads, 4 * d_model"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "dropout-ignored", "The model never drops anything",
    hint="Where does the argument dropout go?",
    breaks=("dropout",),
    change={"d_hidden, context_length, dropout)": "d_hidden, context_length, 0.0)"},
)  # fmt: skip

mistake(
    "GPT", "drops-in-evaluation", "Something is dropped in evaluation, too",
    hint="Does your dropout know whether the model is in training?",
    breaks=("eval",),
    change={
        LAST_NORM: f"{LAST_NORM}\n        self.p = dropout",
        EMBEDDED: f"nn.functional.dropout({EMBEDDED}, self.p)",
    },
)  # fmt: skip

mistake(
    "GPT", "weights-dropped-in-evaluation", "Attention weights are dropped after .eval(), too",
    hint="How does nn.functional.dropout learn whether the model is training?",
    breaks=("eval",),
    change={"x = block(x)": "block.attention.dropout.train()\n            x = block(x)"},
)  # fmt: skip

mistake(
    "GPT", "dropout-of-one-tenth", "A tenth is dropped, whatever `dropout` says",
    hint="What does the model do in training if dropout is 0?",
    change={"d_hidden, context_length, dropout)": "d_hidden, context_length, 0.1)"},
)  # fmt: skip

mistake(
    "GPT", "float32-hard-coded", "The embedding is forced into float32",
    hint="Which dtype does your model compute in after .double()?",
    breaks=("dtype",),
    change={EMBEDDED: f"{EMBEDDED}.float().to(self.token_table.dtype)"},
)  # fmt: skip

mistake(
    "GPT", "returns-float32", "The logits are float32, whatever the weights are",
    hint="Which dtype do your logits have after .double()?",
    breaks=("dtype",),
    change={OUTPUT: f"({OUTPUT}).float()"},
)  # fmt: skip

mistake(
    "GPT", "positions-on-the-cpu", "Positions are made on the CPU",
    hint="Where do the ids live, and where does a new torch.arange?",
    breaks=("device",),
    change={
        EMBEDDED: (
            "nn.functional.embedding(ids, self.token_table)"
            " + nn.functional.embedding(torch.arange(tokens), self.position_table)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "ids-changed-in-place", "The ids are written over",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged",),
    change={
        EMBEDDED: "embed_tokens(ids.clone(), self.token_table, self.position_table)",
        "for block in self.blocks": "ids.zero_()\n        for block in self.blocks",
    },
)  # fmt: skip

mistake(
    "GPT", "post-norm", "Norms come after attention and feed-forward layer, and not before",
    hint="In GPT-2, what does attention get: x, or norm1(x)?",
    change={
        "x = block(x)": (
            "x = block.norm1(x + block.attention(x))\n"
            "            x = block.norm2(x + block.feed_forward(x))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "no-residual", "Blocks do not add their input",
    hint="What would a block whose weights are all zero give?",
    change={
        "x = block(x)": (
            "x = block.attention(block.norm1(x))\n"
            "            x = block.feed_forward(block.norm2(x))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "no-first-shortcut", "The shortcut around the attention is missing",
    hint="What is added to what the attention finds?",
    change={
        "x = block(x)": (
            "x = block.attention(block.norm1(x))\n"
            "            x = x + block.feed_forward(block.norm2(x))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "no-second-shortcut", "The shortcut around the feed-forward network is missing",
    hint="What is added to what the feed-forward network gives?",
    change={
        "x = block(x)": (
            "x = x + block.attention(block.norm1(x))\n"
            "            x = block.feed_forward(block.norm2(x))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "second-shortcut-after-norm", "The second shortcut starts behind the norm",
    hint="What is added to what the feed-forward network gives: h, or what the norm made of it?",
    change={
        "x = block(x)": (
            "x = x + block.attention(block.norm1(x))\n"
            "            x = block.norm2(x)\n"
            "            x = x + block.feed_forward(x)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "batch-counted-as-tokens", "The number of texts is taken for the number of tokens",
    hint="Which of the two numbers in ids.shape counts the tokens of a text?",
    change={EMBEDDED: "self.token_table[ids] + self.position_table[: ids.shape[0]]"},
)  # fmt: skip


mistake(
    "GPT", "no-attention", "The attention is left out",
    hint="Which line of a block looks at other tokens?",
    change={"x = block(x)": "x = x + block.feed_forward(block.norm2(x))"},
)  # fmt: skip

mistake(
    "GPT", "no-feed-forward", "The feed-forward network is left out",
    hint="What comes after the attention in a block?",
    change={"x = block(x)": "x = x + block.attention(block.norm1(x))"},
)  # fmt: skip

mistake(
    "GPT", "layers-in-parallel", "Attention and feed-forward layer of a block get the same input",
    hint="Does the feed-forward layer see what attention found?",
    change={
        "x = block(x)": (
            "x = x + block.attention(block.norm1(x)) + block.feed_forward(block.norm2(x))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "feed-forward-first", "The feed-forward layer comes before attention",
    hint="In which order do the two halves of a block stand?",
    change={
        "x = block(x)": (
            "x = x + block.feed_forward(block.norm2(x))\n"
            "            x = x + block.attention(block.norm1(x))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "relu", "A ReLU stands where the GELU belongs",
    hint="What does the hidden layer do with a number a little below 0?",
    change={
        "x = block(x)": (
            "x = x + block.attention(block.norm1(x))\n"
            "            hidden = torch.relu(block.feed_forward.up(block.norm2(x)))\n"
            "            x = x + block.feed_forward.down(hidden)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "silu", "A SiLU stands where the GELU belongs",
    hint="Which function bends the hidden layer?",
    change={
        "x = block(x)": (
            "x = x + block.attention(block.norm1(x))\n"
            "            hidden = nn.functional.silu(block.feed_forward.up(block.norm2(x)))\n"
            "            x = x + block.feed_forward.down(hidden)"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "one-norm-per-block", "Both halves of a block use its first norm",
    hint="How many norms does a block have?",
    change={
        "x = block(x)": (
            "x = x + block.attention(block.norm1(x))\n"
            "            x = x + block.feed_forward(block.norm1(x))"
        ),
    },
)  # fmt: skip

mistake(
    "GPT", "calls-torch-attention", "Torch's own attention does the work",
    hint="Which functions are off limits here?",
    breaks=("forbidden",),
    change={
        "x = block(x)": (
            "a = block.attention\n"
            "            q, k, v = (\n"
            "                w(block.norm1(x)).unflatten(-1, (a.num_heads, -1)).transpose(1, 2)\n"
            "                for w in (a.W_query, a.W_key, a.W_value)\n"
            "            )\n"
            "            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)\n"
            "            x = x + a.out_proj(y.transpose(1, 2).flatten(2))\n"
            "            x = x + block.feed_forward(block.norm2(x))"
        ),
    },
)  # fmt: skip


@mistake(
    "GPT", "one-fused-block-for-all", "One block does the work of all layers",
    hint="How many blocks does your model hold, and how many sets of weights?",
)  # fmt: skip
class OneFusedBlock(nn.Module):
    def __init__(self, vocab, d, heads, layers, hidden, context, p):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.h = nn.ModuleList([FusedBlock(d, heads, hidden, p)] * layers)
        self.ln_f = nn.LayerNorm(d)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x, _ = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


@accepted("GPT", "embeddings", "Two nn.Embedding, and F.linear with the weight of the first")
class WithEmbeddings(nn.Module):
    def __init__(self, vocab, d, heads, layers, hidden, context, p):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab, d)
        self.pos_emb = nn.Embedding(context, d)
        self.blocks = nn.Sequential(
            *[TransformerBlock(d, heads, hidden, context, p) for _ in range(layers)]  # noqa: F821
        )
        self.ln_f = nn.LayerNorm(d)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.tok_emb(ids) + self.pos_emb(positions)
        return F.linear(self.ln_f(self.blocks(x)), self.tok_emb.weight)


@accepted(
    "GPT", "nano", "A dictionary of parts, fused layers (inputs, outputs), a head that shares"
)
class Nano(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, n_hidden, block_size, dropout):
        super().__init__()
        self.block_size = block_size
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocab_size, n_embd),
                "wpe": nn.Embedding(block_size, n_embd),
                "drop": nn.Dropout(dropout),
                "h": nn.ModuleList(
                    [FusedBlock(n_embd, n_head, n_hidden, dropout, Conv1D) for _ in range(n_layer)]
                ),
                "ln_f": nn.LayerNorm(n_embd),
            }
        )
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx):
        _, t = idx.size()
        assert t <= self.block_size, f"cannot forward {t} tokens"
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        parts = self.transformer
        x = parts.drop(parts.wte(idx) + parts.wpe(pos))
        for block in parts.h:
            x, _ = block(x)
        return self.lm_head(parts.ln_f(x))


@accepted("GPT", "book", "trf_blocks, a norm of its own, and a head that shares the table")
class Book(nn.Module):
    def __init__(self, vocab_size, emb_dim, n_heads, n_layers, hidden, context_length, drop_rate):
        super().__init__()
        self.context_length = context_length
        self.tok_emb = nn.Embedding(vocab_size, emb_dim)
        self.pos_emb = nn.Embedding(context_length, emb_dim)
        self.drop_emb = nn.Dropout(drop_rate)
        self.trf_blocks = nn.Sequential(
            *[
                BookBlock(emb_dim, n_heads, hidden, context_length, drop_rate)
                for _ in range(n_layers)
            ]
        )
        self.final_norm = OwnNorm(emb_dim)
        self.out_head = nn.Linear(emb_dim, vocab_size, bias=False)
        self.out_head.weight = self.tok_emb.weight

    def forward(self, in_idx):
        _batch_size, seq_len = in_idx.shape
        tok_embeds = self.tok_emb(in_idx)
        pos_embeds = self.pos_emb(torch.arange(seq_len, device=in_idx.device))
        x = self.drop_emb(tok_embeds + pos_embeds)
        x = self.trf_blocks(x)
        return self.out_head(self.final_norm(x))


@accepted("GPT", "lecture", "A head at a time, as in a lecture, and a table that is the head's")
class Lecture(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, n_hidden, block_size, dropout):
        super().__init__()
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.token_embedding_table.weight = self.lm_head.weight
        self.position_embedding_table = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(
            *[LectureBlock(n_embd, n_head, n_hidden, block_size, dropout) for _ in range(n_layer)]
        )
        self.ln_f = nn.LayerNorm(n_embd)

    def forward(self, idx):
        B, T = idx.shape
        x = self.token_embedding_table(idx)
        x = x + self.position_embedding_table(torch.arange(T, device=idx.device))
        return self.lm_head(self.ln_f(self.blocks(x)))


@accepted("GPT", "turned-tables", "Tables lie as (d_model, …), and blocks have names with numbers")
class TurnedTables(nn.Module):
    def __init__(self, v, d, h, n, m, c, p):
        super().__init__()
        self.words = nn.Parameter(torch.randn(d, v) / 50)
        self.places = nn.Parameter(torch.randn(d, c) / 50)
        self.n = n
        for i in range(n):
            self.add_module(f"block{i}", TransformerBlock(d, h, m, c, p))  # noqa: F821
        self.last = OwnNorm(d)

    def forward(self, ids):
        t = ids.size(1)
        if t > self.places.size(1):
            raise IndexError(t)
        x = (self.words[:, ids] + self.places[:, None, :t]).permute(1, 2, 0)
        for i in range(self.n):
            x = getattr(self, f"block{i}")(x)
        return self.last(x) @ self.words


@accepted("GPT", "one-table", "One table of tokens and, below them, of positions")
class OneTable(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, n_hidden, block_size, dropout):
        super().__init__()
        self.sizes = [vocab_size, block_size]
        self.vectors = nn.Embedding(vocab_size + block_size, n_embd)
        nn.init.normal_(self.vectors.weight, std=0.02)
        self.body = nn.ModuleList(
            FusedBlock(n_embd, n_head, n_hidden, dropout) for _ in range(n_layer)
        )
        self.last = nn.LayerNorm(n_embd)

    def forward(self, tokens):
        words, places = self.vectors.weight.split(self.sizes)
        x = words[tokens] + places[torch.arange(tokens.shape[-1], device=tokens.device)]
        for step in self.body:
            x, _ = step(x)
        return self.last(x) @ words.T


@accepted("GPT", "one-list-per-kind", "A list of attentions, lists of norms, a list of layers")
class ListPerKind(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        some = range(num_layers)
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.attentions = nn.ModuleList(
            [BookAttention(d_model, d_model, context_length, dropout, num_heads) for _ in some]
        )
        self.norms1 = nn.ModuleList([nn.LayerNorm(d_model) for _ in some])
        self.norms2 = nn.ModuleList([nn.LayerNorm(d_model) for _ in some])
        self.ups = nn.ModuleList([nn.Linear(d_model, d_hidden) for _ in some])
        self.downs = nn.ModuleList([nn.Linear(d_hidden, d_model) for _ in some])
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids):
        n = ids.shape[1]
        if n > self.position_embedding.num_embeddings:
            raise ValueError("too long")
        x = self.token_embedding(ids) + self.position_embedding.weight[:n]
        parts = zip(self.norms1, self.attentions, self.norms2, self.ups, self.downs)  # noqa: B905
        for norm1, attend, norm2, up, down in parts:
            x = x + attend(norm1(x))
            x = x + down(F.gelu(up(norm2(x))))
        return torch.einsum("btd,vd->btv", self.norm(x), self.token_embedding.weight)


@accepted("GPT", "pairs-of-layers", "Each layer is a list of two, and each of these has its norm")
class PairsOfLayers(nn.Module):
    def __init__(self, num_tokens, dim, heads, depth, mlp_dim, max_seq_len, dropout):
        super().__init__()
        self.token_emb = nn.Embedding(num_tokens, dim)
        self.pos_emb = nn.Embedding(max_seq_len, dim)
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            attention = nn.ModuleDict(
                {"norm": nn.LayerNorm(dim), "fn": FusedAttention(dim, heads, dropout)}
            )
            feed = nn.Sequential(
                nn.LayerNorm(dim), nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim)
            )
            self.layers.append(nn.ModuleList([attention, feed]))
        self.to_logits = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_tokens, bias=False))
        self.to_logits[1].weight = self.token_emb.weight

    def forward(self, x):
        n, device = x.shape[1], x.device
        x = self.token_emb(x)
        x = x + self.pos_emb(torch.arange(n, device=device))[None]
        for attention, feed in self.layers:
            x = attention["fn"](attention["norm"](x))[0] + x
            x = feed(x) + x
        return self.to_logits(x)


@accepted("GPT", "one-hot", "One-hot vectors times bare tables, and blocks in a dictionary")
class OneHot(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.E = nn.Parameter(torch.randn(vocab_size, d_model) * 0.02)
        self.P = nn.Parameter(torch.randn(1, context_length, d_model) * 0.02)
        self.layers = nn.ModuleDict(
            {
                f"layer_{n}": FusedBlock(d_model, num_heads, d_hidden, dropout)
                for n in range(num_layers)
            }
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids):
        vocab, tokens = self.E.shape[0], ids.shape[1]
        if tokens > self.P.shape[1]:
            raise RuntimeError(f"the context is {self.P.shape[1]}")
        x = F.one_hot(ids, vocab).to(self.E.dtype) @ self.E + self.P[:, :tokens]
        print(x.shape)
        for layer in self.layers.values():
            x = layer(x)[0]
        return self.norm(x) @ self.E.mT


@accepted("GPT", "in-one-class", "The model holds all layers of all blocks, under numbered names")
class InOneClass(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.num_heads, self.num_layers, self.p = num_heads, num_layers, dropout
        self.context_length = context_length
        self.token_table = nn.Embedding(vocab_size, d_model)
        self.position_table = nn.Embedding(context_length, d_model)
        for n in range(num_layers):
            for name in ("query", "key", "value"):
                setattr(self, f"{name}_{n}", nn.Linear(d_model, d_model, bias=False))
            setattr(self, f"out_{n}", nn.Linear(d_model, d_model))
            setattr(self, f"up_{n}", nn.Linear(d_model, d_hidden))
            setattr(self, f"down_{n}", nn.Linear(d_hidden, d_model))
            setattr(self, f"before_{n}", nn.LayerNorm(d_model))
            setattr(self, f"between_{n}", nn.LayerNorm(d_model))
        self.final_norm = nn.LayerNorm(d_model)

    def layer(self, n, x):
        q, k, v = (
            getattr(self, f"{name}_{n}")(getattr(self, f"before_{n}")(x))
            .unflatten(-1, (self.num_heads, -1))
            .transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones_like(scores[0, 0]).triu(1).bool()
        weights = F.dropout(
            scores.masked_fill(future, -torch.inf).softmax(-1), self.p, self.training
        )
        x = x + getattr(self, f"out_{n}")((weights @ v).transpose(1, 2).flatten(2))
        wide = F.gelu(getattr(self, f"up_{n}")(getattr(self, f"between_{n}")(x)))
        return x + getattr(self, f"down_{n}")(wide)

    def forward(self, ids):
        if ids.shape[1] > self.context_length:
            raise ValueError
        x = self.token_table.weight[ids] + self.position_table.weight[: ids.shape[1]]
        for n in range(self.num_layers):
            x = self.layer(n, x)
        return F.linear(self.final_norm(x), self.token_table.weight)


# --- adamw_step ----------------------------------------------------------------------------------

MOMENTUM = "beta1 * momentum + (1 - beta1) * gradient"
SQUARE = "beta2 * square + (1 - beta2) * gradient**2"
MOVE = "lr * corrected_momentum / (corrected_square.sqrt() + eps)"
DECAYED = "gradient = gradient + weight_decay * parameter"
RESULT = "return parameter - decay - move, new_momentum, new_square"
LATE_DECAY = """new = parameter - move
    return new - lr * weight_decay * new, new_momentum, new_square"""

mistake(
    "adamw_step", "not-corrected", "Neither mean is corrected for its start at 0",
    hint="After the first step, what is m if every gradient is 1?",
    change={" / (1 - beta1**step)": "", " / (1 - beta2**step)": ""},
)  # fmt: skip

mistake(
    "adamw_step", "momentum-not-corrected", "m is not corrected for its start at 0",
    hint="After the first step, what is m if every gradient is 1?",
    change={" / (1 - beta1**step)": ""},
)  # fmt: skip

mistake(
    "adamw_step", "square-not-corrected", "v is not corrected for its start at 0",
    hint="After the first step, what is v if every gradient is 1?",
    change={" / (1 - beta2**step)": ""},
)  # fmt: skip

mistake(
    "adamw_step", "corrected-returned", "m̂ and v̂ are returned, where the caller needs m and v",
    hint="What does the next step multiply by β₁: m, or m̂?",
    change={"new_momentum, new_square": "corrected_momentum, corrected_square"},
)  # fmt: skip

mistake(
    "adamw_step", "old-means-returned", "m and v come back as they were",
    hint="What should the next step get as its momentum?",
    change={"new_momentum, new_square": "momentum, square"},
)  # fmt: skip

mistake(
    "adamw_step", "means-swapped", "v is returned before m",
    hint="In which order does the caller expect the three?",
    change={"new_momentum, new_square": "new_square, new_momentum"},
)  # fmt: skip

mistake(
    "adamw_step", "step-from-zero", "The first step is counted as number 0",
    hint="With step = 1, which power of β₁ do you subtract from 1?",
    change={"beta1**step": "beta1 ** (step + 1)", "beta2**step": "beta2 ** (step + 1)"},
)  # fmt: skip

mistake(
    "adamw_step", "one-step-behind", "The step before counts, and the first divides by 0",
    hint="With step = 1, which power of β₁ do you subtract from 1?",
    change={"beta1**step": "beta1 ** (step - 1)", "beta2**step": "beta2 ** (step - 1)"},
)  # fmt: skip

mistake(
    "adamw_step", "always-the-first-step", "The power of β is missing",
    hint="Does the correction become weaker from step to step?",
    change={"beta1**step": "beta1", "beta2**step": "beta2"},
)  # fmt: skip

mistake(
    "adamw_step", "times-for-power", "β is multiplied by the step, and not raised to its power",
    hint="Can 1 - β₁ · step become negative?",
    change={"beta1**step": "beta1 * step", "beta2**step": "beta2 * step"},
)  # fmt: skip

mistake(
    "adamw_step", "multiplied-by-the-correction", "The correction multiplies, and does not divide",
    hint="Are m and v too large or too small in the first step?",
    change={"momentum / (1": "momentum * (1", "square / (1": "square * (1"},
)  # fmt: skip

mistake(
    "adamw_step", "starts-with-the-gradient", "The first momentum is the gradient itself",
    hint="What is m after the first step: the gradient, or a share of it?",
    change={
        "    new_square =": (
            "    if step == 1:\n        new_momentum = gradient.clone()\n    new_square ="
        ),
    },
)  # fmt: skip

mistake(
    "adamw_step", "empty-mean-takes-the-gradient", "A momentum of 0 is replaced by the gradient",
    hint="What is m after the first step: the gradient, or a share of it?",
    change={
        "    new_square =": (
            "    if not momentum.any():\n        new_momentum = gradient.clone()\n    new_square ="
        ),
    },
)  # fmt: skip

mistake(
    "adamw_step", "logarithm-of-beta", "A β of 0 has no logarithm",
    hint="What is the logarithm of 0, and which other way is there to a power?",
    change={
        "beta1**step": "__import__('math').exp(step * __import__('math').log(beta1))",
    },
)  # fmt: skip

mistake(
    "adamw_step", "decay-of-the-new", "The decay takes its share of the parameter that has moved",
    hint="Which of the two comes first, the step or the decay? Or does neither?",
    change={RESULT: LATE_DECAY},
)  # fmt: skip

mistake(
    "adamw_step", "decay-in-the-gradient", "The decay is added to the gradient: that is Adam",
    hint="Should the decay go through m, v and the square root?",
    change={
        "    new_momentum =": f"    {DECAYED}\n    new_momentum =",
        "decay = lr * weight_decay * parameter": "decay = 0.0",
    },
)  # fmt: skip

mistake(
    "adamw_step", "decay-in-both", "The decay is added to the gradient as well",
    hint="How often should the decay come in?",
    change={
        "    new_momentum =": f"    {DECAYED}\n    new_momentum =",
    },
)  # fmt: skip

mistake(
    "adamw_step", "decay-without-rate", "The decay is not multiplied by the learning rate",
    hint="What should happen to the decay when the learning rate goes to 0?",
    change={"lr * weight_decay * parameter": "weight_decay * parameter"},
)  # fmt: skip

mistake(
    "adamw_step", "no-decay", "The decay is missing",
    hint="What happens to a weight whose gradient is always 0?",
    change={"lr * weight_decay * parameter": "0.0"},
)  # fmt: skip

mistake(
    "adamw_step", "decay-grows", "The decay makes weights larger",
    hint="Towards which number should the decay pull a weight?",
    change={"parameter - decay": "parameter + decay"},
)  # fmt: skip

mistake(
    "adamw_step", "decay-divided-by-the-root", "The decay is divided by √v̂ as well",
    hint="Is the decay inside of the fraction, or beside it?",
    change={
        "decay = lr * weight_decay * parameter": (
            "decay = lr * weight_decay * parameter / (corrected_square.sqrt() + eps)"
        ),
    },
)  # fmt: skip

mistake(
    "adamw_step", "decay-of-the-step", "The decay shrinks the step as well",
    hint="From which number is the step taken off: from all of the parameter, or after it shrank?",
    change={RESULT: RESULT.replace("- move", "- (1 - weight_decay) * move")},
)  # fmt: skip

mistake(
    "adamw_step", "rate-at-the-decay-only", "The step is not multiplied by the learning rate",
    hint="How far does a parameter move when the learning rate is 0?",
    change={MOVE: MOVE.removeprefix("lr * ")},
)  # fmt: skip

mistake(
    "adamw_step", "ascent", "The step goes up the gradient",
    hint="Should the loss become larger or smaller?",
    change={"- move": "+ move"},
)  # fmt: skip

mistake(
    "adamw_step", "eps-in-the-root", "eps is added inside of the root",
    hint="Which comes first, the root or the sum?",
    change={"(corrected_square.sqrt() + eps)": "(corrected_square + eps).sqrt()"},
)  # fmt: skip

mistake(
    "adamw_step", "eps-corrected-too", "eps is added before v is corrected",
    hint="Is eps divided by anything in the formula?",
    change={
        "(corrected_square.sqrt() + eps)": (
            "((new_square.sqrt() + eps) / (1 - beta2**step) ** 0.5)"
        ),
    },
)  # fmt: skip

mistake(
    "adamw_step", "no-eps", "eps is missing",
    hint="What is the step of a parameter whose gradients were all 0?",
    change={" + eps": ""},
)  # fmt: skip

mistake(
    "adamw_step", "no-root", "The root of v̂ is missing",
    hint="If all gradients become ten times larger, how much larger should the step be?",
    change={"corrected_square.sqrt()": "corrected_square"},
)  # fmt: skip

mistake(
    "adamw_step", "square-over-m", "m̂ and √v̂ have changed places",
    hint="Which of the two is on top of the fraction?",
    change={MOVE: "lr * corrected_square.sqrt() / (corrected_momentum + eps)"},
)  # fmt: skip

mistake(
    "adamw_step", "betas-swapped", "β₁ and β₂ have changed places",
    hint="Which of the two belongs to the squares?",
    change={"beta1, beta2 = betas": "beta2, beta1 = betas"},
)  # fmt: skip

mistake(
    "adamw_step", "beta-and-rest-swapped", "β weighs the new gradient, and 1 - β the past",
    hint="With β₁ = 0.9, which share of m comes from this gradient?",
    change={
        MOMENTUM: "(1 - beta1) * momentum + beta1 * gradient",
        SQUARE: "(1 - beta2) * square + beta2 * gradient**2",
    },
)  # fmt: skip

mistake(
    "adamw_step", "gradient-not-weighed", "The gradient is added to m in full",
    hint="If every gradient is 1, what should m come to in the end?",
    change={MOMENTUM: "beta1 * momentum + gradient"},
)  # fmt: skip

mistake(
    "adamw_step", "squares-not-weighed", "The squared gradient is added to v in full",
    hint="If every gradient is 1, what should v come to in the end?",
    change={SQUARE: "beta2 * square + gradient**2"},
)  # fmt: skip

mistake(
    "adamw_step", "not-squared", "v is a mean of gradients' sizes, not of their squares",
    hint="Of what is v the mean?",
    change={"gradient**2": "gradient.abs()"},
)  # fmt: skip

mistake(
    "adamw_step", "squared-momentum", "v is made of m, and not of the gradient",
    hint="Of what is v the mean?",
    change={"gradient**2": "new_momentum**2"},
)  # fmt: skip

mistake(
    "adamw_step", "squared-with-its-share", "The share 1 - β₂ is squared, too",
    hint="What exactly is squared in the formula?",
    change={SQUARE: "beta2 * square + ((1 - beta2) * gradient) ** 2"},
)  # fmt: skip

mistake(
    "adamw_step", "largest-square", "v never becomes smaller: that is AMSGrad",
    hint="What happens to v when gradients become small?",
    change={
        "    # Both means": (
            "    new_square = torch.maximum(square, new_square)\n    # Both means"
        ),
    },
)  # fmt: skip

mistake(
    "adamw_step", "gradient-for-momentum", "The step goes along the gradient, and not along m",
    hint="What does m̂ do in your step?",
    change={MOVE: MOVE.replace("corrected_momentum", "gradient")},
)  # fmt: skip

mistake(
    "adamw_step", "nesterov", "The gradient counts twice, as in NAdam",
    hint="What does the fraction have on top in the formula?",
    change={
        "new_momentum / (1 - beta1**step)": (
            "(beta1 * new_momentum + (1 - beta1) * gradient) / (1 - beta1**step)"
        ),
    },
)  # fmt: skip

mistake(
    "adamw_step", "old-momentum-used", "The step uses the momentum from before this gradient",
    hint="Which m does the formula of m̂ have in it?",
    change={"corrected_momentum = new_momentum": "corrected_momentum = momentum"},
)  # fmt: skip

mistake(
    "adamw_step", "old-square-used", "The step uses the squares from before this gradient",
    hint="Which v does the formula of v̂ have in it?",
    change={"corrected_square = new_square": "corrected_square = square"},
)  # fmt: skip

mistake(
    "adamw_step", "one-root-for-all", "One step size is taken for all elements",
    hint="How many roots of v̂ does a matrix of weights have?",
    change={"corrected_square.sqrt()": "corrected_square.mean().sqrt()"},
)  # fmt: skip

mistake(
    "adamw_step", "plain-descent", "That is gradient descent with a decay",
    hint="What do m and v do in your step?",
    change={MOVE: "lr * gradient"},
)  # fmt: skip

mistake(
    "adamw_step", "parameter-only", "Only the parameter is returned",
    hint="What does the caller need for the next step?",
    breaks=("returns",),
    change={RESULT: "return parameter - decay - move"},
)  # fmt: skip

mistake(
    "adamw_step", "step-returned-too", "The step's number is returned as well",
    hint="How many things does the caller expect?",
    breaks=("returns",),
    change={RESULT: f"{RESULT}, step + 1"},
)  # fmt: skip

mistake(
    "adamw_step", "matrices-only", "The parameter must have two dimensions",
    hint="Which shapes do biases have?",
    breaks=("leading",),
    change={"beta1, beta2 = betas": "(_, _), (beta1, beta2) = parameter.shape, betas"},
)  # fmt: skip

mistake(
    "adamw_step", "vectors-at-least", "A parameter without dimensions fails",
    hint="What is the length of a tensor that holds a single number?",
    breaks=("leading",),
    change={"    beta1, beta2 = betas": "    assert len(parameter) > 0\n    beta1, beta2 = betas"},
)  # fmt: skip

mistake(
    "adamw_step", "parameter-in-place", "The caller's parameter is changed",
    hint="Who else holds the tensors that you were given?",
    breaks=("unchanged",),
    change={
        RESULT: "return parameter.sub_(decay + move).clone(), new_momentum, new_square",
    },
)  # fmt: skip

mistake(
    "adamw_step", "means-in-place", "The caller's momentum and square are changed",
    hint="What do mul_ and add_ do, and to whose tensor?",
    breaks=("unchanged",),
    change={
        MOMENTUM: "momentum.mul_(beta1).add_((1 - beta1) * gradient)",
        SQUARE: "square.mul_(beta2).add_((1 - beta2) * gradient**2)",
    },
)  # fmt: skip

mistake(
    "adamw_step", "gradient-in-place", "The caller's gradient is squared in place",
    hint="Which of your operations end in an underscore, and whose tensors do they change?",
    breaks=("unchanged",),
    change={SQUARE: "beta2 * square + (1 - beta2) * gradient.pow_(2)"},
)  # fmt: skip

mistake(
    "adamw_step", common="float32-inside",
    change={"parameter - decay - move": "(parameter - decay - move).float().to(parameter)"},
)  # fmt: skip

mistake(
    "adamw_step", "means-through-float32", "m and v pass through float32",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change={
        "new_momentum, new_square": (
            "new_momentum.float().to(momentum), new_square.float().to(square)"
        ),
    },
)  # fmt: skip


@mistake(
    "adamw_step", "calls-the-optimiser", "torch.optim.AdamW does the work",
    hint="Which lines would you write if torch had no optimisers?",
    breaks=("forbidden",),
)  # fmt: skip
def step_of_the_optimiser(parameter, gradient, m, v, step, lr, betas, eps, weight_decay):
    p = nn.Parameter(parameter.clone())
    p.grad = gradient.clone()
    optimiser = torch.optim.AdamW([p], lr, betas, eps, weight_decay)
    optimiser.state[p] = {
        "step": torch.tensor(step - 1.0), "exp_avg": m.clone(), "exp_avg_sq": v.clone(),
    }  # fmt: skip
    optimiser.step()
    state = optimiser.state[p]
    return p.detach(), state["exp_avg"], state["exp_avg_sq"]


@mistake(
    "adamw_step", "calls-the-function", "torch's function behind AdamW does the work",
    hint="Which lines would you write if torch had no optimisers?",
    breaks=("forbidden",),
)  # fmt: skip
def step_of_the_function(parameter, gradient, m, v, step, lr, betas, eps, weight_decay):
    from torch.optim.adamw import adamw

    p, m, v, count = parameter.clone(), m.clone(), v.clone(), torch.tensor(step - 1.0)
    adamw(
        [p], [gradient], [m], [v], [], [count], amsgrad=False, beta1=betas[0], beta2=betas[1],
        lr=lr, weight_decay=weight_decay, eps=eps, maximize=False,
    )  # fmt: skip
    return p, m, v


@mistake(
    "adamw_step", "calls-the-kernel", "torch's fused kernel does the work",
    hint="Which lines would you write if that kernel did not exist?",
    breaks=("forbidden",),
)  # fmt: skip
def step_of_the_kernel(parameter, gradient, m, v, step, lr, betas, eps, weight_decay):
    p, m, v, count = parameter.clone(), m.clone(), v.clone(), torch.tensor(float(step))
    torch._fused_adamw_(
        [p], [gradient.clone()], [m], [v], [], [count], lr=lr, beta1=betas[0], beta2=betas[1],
        weight_decay=weight_decay, eps=eps, amsgrad=False, maximize=False,
    )  # fmt: skip
    return p, m, v


mistake(
    "adamw_step", "unsquared", "v is a mean of the gradients themselves, not of their squares",
    hint="Of what is v the mean? Can that be negative, and what is its root then?",
    change={"gradient**2": "gradient"},
)  # fmt: skip

CORRECTED_RATE = "lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)"

mistake(
    "adamw_step", "decay-by-the-corrected-rate",
    "The decay is multiplied by the corrected rate, and not by lr",
    hint="Which line changes the learning rate, and which of the lines below still need lr itself?",
    change={"decay = lr *": f"decay = {CORRECTED_RATE} *"},
)  # fmt: skip

mistake("adamw_step", together=("eps-corrected-too", "decay-of-the-new"))
mistake("adamw_step", together=("eps-in-the-root", "decay-of-the-new"))
mistake("adamw_step", together=("not-corrected", "decay-of-the-new"))
mistake("adamw_step", together=("not-corrected", "decay-in-the-gradient"))
mistake("adamw_step", together=("no-eps", "decay-of-the-new"))
mistake("adamw_step", together=("eps-corrected-too", "decay-in-the-gradient"))
mistake("adamw_step", together=("eps-corrected-too", "decay-without-rate"))
mistake("adamw_step", together=("eps-corrected-too", "no-decay"))
mistake("adamw_step", together=("eps-corrected-too", "decay-by-the-corrected-rate"))
mistake("adamw_step", together=("decay-of-the-new", "corrected-returned"))
mistake("adamw_step", together=("unsquared", "decay-of-the-new"))
mistake("adamw_step", together=("unsquared", "eps-corrected-too"))
mistake("adamw_step", together=("unsquared", "eps-corrected-too", "decay-of-the-new"))

# The short form of the step, with eps where torch's code has it or under the root of v.
UNDER_THE_ROOT = "((new_square + eps).sqrt() / (1 - beta2**step) ** 0.5)"

mistake(
    "adamw_step", together=("eps-in-the-root", "eps-corrected-too"),
    change={"(corrected_square.sqrt() + eps)": UNDER_THE_ROOT},
)  # fmt: skip

mistake(
    "adamw_step", together=("eps-in-the-root", "eps-corrected-too", "decay-of-the-new"),
    change={"(corrected_square.sqrt() + eps)": UNDER_THE_ROOT, RESULT: LATE_DECAY},
)  # fmt: skip

mistake(
    "adamw_step", together=("eps-corrected-too", "decay-without-rate", "decay-of-the-new"),
    change={
        "(corrected_square.sqrt() + eps)": (
            "((new_square.sqrt() + eps) / (1 - beta2**step) ** 0.5)"
        ),
        RESULT: LATE_DECAY.replace("lr * ", ""),
    },
)  # fmt: skip

mistake(
    "adamw_step", together=("decay-without-rate", "decay-of-the-new"),
    change={RESULT: LATE_DECAY.replace("lr * ", "")},
)  # fmt: skip

mistake(
    "adamw_step", together=("eps-corrected-too", "decay-by-the-corrected-rate", "decay-of-the-new"),
    change={
        "(corrected_square.sqrt() + eps)": (
            "((new_square.sqrt() + eps) / (1 - beta2**step) ** 0.5)"
        ),
        RESULT: LATE_DECAY.replace("lr *", f"{CORRECTED_RATE} *"),
    },
)  # fmt: skip


mistake("adamw_step", "no-return", common="nothing-returned")


@accepted("adamw_step", "in-place-on-copies", "Copies, changed in place as in torch")
def step_on_copies(parameter, gradient, momentum, square, step, lr, betas, eps, weight_decay):
    with torch.no_grad():
        p, m, v = parameter.clone(), momentum.clone(), square.clone()
        p.mul_(1 - lr * weight_decay)
        m.lerp_(gradient, 1 - betas[0])
        v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
        root = v.sqrt() / (1 - betas[1] ** step) ** 0.5
        p.addcdiv_(m, root.add_(eps), value=-lr / (1 - betas[0] ** step))
    return p, m, v


@accepted("adamw_step", "short-names", "The paper's letters, a list for a tuple")
def step_in_letters(theta, g, m, v, t, alpha, beta, eps, lam):
    m = m * beta[0] + g * (1 - beta[0])
    v = v * beta[1] + g * g * (1 - beta[1])
    mhat, vhat = m / (1 - beta[0] ** t), v / (1 - beta[1] ** t)
    return [theta - alpha * (mhat / (torch.sqrt(vhat) + eps) + lam * theta), m, v]


@accepted("adamw_step", "differences", "Each mean moves by a share of the difference")
def step_by_differences(parameter, gradient, momentum, square, step, lr, betas, eps, weight_decay):
    b1, b2 = betas
    m = momentum + (1 - b1) * (gradient - momentum)
    v = square + (1 - b2) * (gradient.square() - square)
    rate = lr * (1 - b2**step) ** 0.5 / (1 - b1**step)
    small = eps * (1 - b2**step) ** 0.5
    shrunk = parameter * (1 - lr * weight_decay)
    print(rate)
    return shrunk - rate * m / (v.sqrt() + small), m, v


@accepted("adamw_step", "element-by-element", "Numbers, one after another")
def step_element_by_element(p, g, m, v, step, lr, betas, eps, weight_decay):
    one = torch.ones((), dtype=p.dtype)
    out = []
    for w, d, a, b in zip(*(x.flatten() for x in (p, g, m, v)), strict=True):
        a = betas[0] * a + (1 - betas[0]) * d
        b = betas[1] * b + (1 - betas[1]) * d * d
        up = a / (one - betas[0] ** step)
        down = (b / (one - betas[1] ** step)) ** 0.5 + eps
        out.append(torch.stack([w - lr * weight_decay * w - lr * up / down, a, b]))
    new = torch.stack(out)
    return tuple(new[:, i].reshape(p.shape) for i in range(3))


@accepted("adamw_step", "written-into-data", "A copy of the parameter, changed through .data")
def step_through_data(parameter, gradient, momentum, square, step, lr, betas, eps, weight_decay):
    new = nn.Parameter(parameter.detach().clone())
    m = torch.lerp(gradient, momentum, betas[0])
    v = torch.lerp(gradient**2, square, betas[1])
    update = (m / (1 - pow(betas[0], step))).div((v / (1 - pow(betas[1], step))) ** 0.5 + eps)
    new.data -= lr * (update + weight_decay * new.data)
    return new, m, v


accepted(
    "adamw_step", "foreach", "Operations on lists of tensors are no optimiser",
    change={
        "return parameter - decay - move": (
            "return torch._foreach_sub([parameter - decay], [move])[0]"
        ),
    },
)  # fmt: skip

# --- generate -------------------------------------------------------------------------------------

LOGITS = "logits = model(ids[:, -context_length:])"
NEXT = "logits[:, -1].argmax(dim=-1)"
JOIN = "torch.cat([ids, next_ids[:, None]], dim=1)"

mistake(
    "generate", "first-position", "The guess at the first position is taken",
    hint="Which position of the logits has seen all the ids?",
    change={"logits[:, -1]": "logits[:, 0]"},
)  # fmt: skip

mistake(
    "generate", "last-but-one-position", "The guess at the last position but one is taken",
    hint="At the last position but one, the model guesses which id?",
    change={"logits[:, -1]": "logits[:, -2:][:, 0]"},
)  # fmt: skip

mistake(
    "generate", "positions-averaged", "The logits of all positions are averaged",
    hint="Which position guesses an id that is not there yet?",
    change={"logits[:, -1]": "logits.mean(dim=1)"},
)  # fmt: skip

mistake(
    "generate", "likeliest-position", "The argmax runs over the positions, not over the vocabulary",
    hint="What does the last axis of the logits count, and what the one before it?",
    change={NEXT: "logits.argmax(dim=1)[:, -1]"},
)  # fmt: skip

mistake(
    "generate", "likeliest-row", "The argmax runs over the rows of the batch",
    hint="Which axis of the logits is the vocabulary?",
    change={NEXT: "logits[:, -1].argmax(dim=0)[: len(ids)]"},
)  # fmt: skip

mistake(
    "generate", "first-row-decides", "All rows go on with the next id of the first",
    hint="What would a row go on with if it were alone?",
    change={NEXT: "logits[0, -1].argmax(dim=-1).expand(len(ids))"},
)  # fmt: skip

mistake(
    "generate", "rows-averaged", "The rows of a batch decide together",
    hint="What would a row go on with if it were alone?",
    change={NEXT: "logits[:, -1].mean(dim=0).argmax(dim=-1).expand(len(ids))"},
)  # fmt: skip

mistake(
    "generate", "least-likely", "The least likely id is taken",
    hint="Is a large logit a likely id, or an unlikely one?",
    change={"argmax": "argmin"},
)  # fmt: skip

mistake(
    "generate", "second-likeliest", "The second likeliest id is taken",
    hint="In which order does a sort put the logits?",
    change={NEXT: "logits[:, -1].argsort(dim=-1)[:, -2]"},
)  # fmt: skip

mistake(
    "generate", "samples", "The next id is drawn at random",
    hint="Does the same prompt give the same text twice?",
    change={NEXT: "torch.multinomial(logits[:, -1].softmax(dim=-1), 1)[:, 0]"},
)  # fmt: skip

mistake(
    "generate", "id-in-front", "The next id is put in front of the text",
    hint="At which end does a text grow?",
    change={JOIN: "torch.cat([next_ids[:, None], ids], dim=1)"},
)  # fmt: skip

mistake(
    "generate", "no-column", "The next ids are no column, and cannot be joined to the text",
    hint="The text has rows and columns: how many dimensions does what argmax gives have?",
    change={JOIN: "torch.cat([ids, next_ids], dim=1)"},
)  # fmt: skip

mistake(
    "generate", "a-row-for-a-column", "One row is appended to all texts, and not a row for each",
    hint="Each text gets one id: how many rows and columns do the new ids have?",
    change={JOIN: "torch.cat([ids, next_ids[None]], dim=1)"},
)  # fmt: skip


@mistake(
    "generate", "first-text-alone", "Only the first text of the batch comes back",
    hint="How many texts go in, and how many should come out?",
    breaks=("returns",),
)  # fmt: skip
def generate_for_one(model, ids, new_tokens, context_length):
    text = ids[:1]
    for _ in range(new_tokens):
        next_id = model(text[:, -context_length:])[:, -1].argmax(dim=-1)
        text = torch.cat([text, next_id[:, None]], dim=1)
    return text


mistake(
    "generate", "only-the-last-id", "The model sees the last id alone",
    hint="What does the model have to know to go on: the last word, or the sentence?",
    change={"ids[:, -context_length:]": "ids[:, -1:]"},
)  # fmt: skip

mistake(
    "generate", "prompt-forgotten", "After the first step, the model sees only what it wrote",
    hint="Which ids does the model see in the second step?",
    change={
        "for _ in range(new_tokens):": "tokens = ids.shape[1]\n    for step in range(new_tokens):",
        "ids[:, -context_length:]": "ids[:, tokens if step else 0 :][:, -context_length:]",
    },
)  # fmt: skip

mistake(
    "generate", "window-stands-still",
    "The model sees the prompt alone, and guesses the same again and again",
    hint="Does the model see the ids that it has just written?",
    change={
        "for _ in range(new_tokens):": (
            "logits = model(ids[:, -context_length:])\n    for _ in range(new_tokens):"
        ),
        "        logits = model(ids[:, -context_length:])  # (batch, visible, vocab)\n": "",
    },
)  # fmt: skip

mistake(
    "generate", "prompt-guessed-again", "The ids of the prompt are replaced by the model's guesses",
    hint="Which positions of the logits do you need, when the prompt is known?",
    change={
        "ids = torch.cat([ids, next_ids[:, None]], dim=1)": (
            "known = ids[:, : -logits.shape[1]]\n"
            "        ids = torch.cat([known, ids[:, :1], logits.argmax(dim=-1)], dim=1)\n"
            "        ids = ids[:, -known.shape[1] - logits.shape[1] - 1 :]"
        ),
    },
)  # fmt: skip

mistake(
    "generate", "only-new-ids", "The new ids come back without the prompt",
    hint="How many columns has the result of the example, and how many of them are new?",
    breaks=("returns",),
    change={
        "for _ in": "tokens = ids.shape[1]\n    for _ in",
        "return ids": "return ids[:, tokens:]",
    },
)  # fmt: skip

mistake(
    "generate", "one-short", "One id too few is written",
    hint="How many new ids does your loop write if one is asked for?",
    breaks=("returns",),
    change={"range(new_tokens)": "range(1, new_tokens)"},
)  # fmt: skip

mistake(
    "generate", "one-too-many", "One id too many is written",
    hint="How many new ids does your loop write if one is asked for?",
    breaks=("returns",),
    change={"range(new_tokens)": "range(new_tokens + 1)"},
)  # fmt: skip

mistake(
    "generate", "prompt-counted", "The ids of the prompt count as new ones",
    hint="Is new_tokens the length of the result, or of what is appended?",
    breaks=("returns",),
    change={"range(new_tokens)": "range(new_tokens - ids.shape[1])"},
)  # fmt: skip

mistake(
    "generate", "ids-as-floats", "The ids come back as floating-point numbers",
    hint="What is the dtype of a new tensor of zeros, unless you say which?",
    breaks=("returns",),
    change={"return ids": "return ids.float()"},
)  # fmt: skip

mistake(
    "generate", "visible-part-returned", "What the model saw comes back, not the whole text",
    hint="Does cutting the ids for the model change what you return?",
    breaks=("context",),
    change={
        LOGITS: "ids = ids[:, -context_length:]\n        logits = model(ids)",
    },
)  # fmt: skip

mistake(
    "generate", "never-cut", "The model is shown more ids than it can see",
    hint="How many ids has the text when it grows beyond context_length?",
    breaks=("context",),
    change={"ids[:, -context_length:]": "ids"},
)  # fmt: skip

mistake(
    "generate", "cut-by-rows", "Rows are cut off the batch, and not ids off the text",
    hint="Which axis does a single slice in brackets cut?",
    breaks=("context",),
    change={"ids[:, -context_length:]": "ids[-context_length:]"},
    same_as={"never-cut": "of so few rows none is cut off"},
)  # fmt: skip

mistake(
    "generate", "first-ids-shown", "The model sees the first ids of the text, and not the last",
    hint="Which ids matter most for the next one: those at the beginning or at the end?",
    breaks=("context",),
    change={"ids[:, -context_length:]": "ids[:, :context_length]"},
)  # fmt: skip

mistake(
    "generate", "window-one-short", "The model sees one id fewer than it could",
    hint="How many ids does your slice keep if context_length is 2?",
    breaks=("context",),
    change={"ids[:, -context_length:]": "ids[:, -max(context_length - 1, 1) :]"},
)  # fmt: skip

mistake(
    "generate", "window-one-too-long", "The model is shown one id more than it can see",
    hint="How many ids does your slice keep if context_length is 2?",
    breaks=("context",),
    change={"ids[:, -context_length:]": "ids[:, -context_length - 1 :]"},
)  # fmt: skip

mistake(
    "generate", "stops-when-full", "It stops writing when the text reaches the context length",
    hint="Which ids could the model look at when the text is longer than its context?",
    breaks=("context",),
    change={
        "for _ in": "room = max(context_length - ids.shape[1], 0)\n    for _ in",
        "range(new_tokens)": "range(min(new_tokens, room))",
    },
)  # fmt: skip

mistake(
    "generate", "prompt-cut-once", "A long prompt is cut before the loop, and its start is lost",
    hint="Which ids does the caller expect back, of a long prompt?",
    breaks=("context",),
    change={"for _ in": "ids = ids[:, -context_length:]\n    for _ in"},
)  # fmt: skip

mistake(
    "generate", "window-starts-anew", "When the window is full, the model begins with an empty one",
    hint="When the text grows by one id, how many ids should leave the window?",
    breaks=("context",),
    change={
        "ids[:, -context_length:]": (
            "ids[:, (ids.shape[1] - 1) // context_length * context_length :]"
        ),
    },
)  # fmt: skip

mistake(
    "generate", "writes-once-at-least", "One id is written though none was asked for",
    hint="How often does your loop run if new_tokens is 0?",
    breaks=("zero",),
    change={"range(new_tokens)": "range(max(new_tokens, 1))"},
)  # fmt: skip


@mistake(
    "generate", "joins-nothing", "Without new ids, there is nothing to join, and it raises",
    hint="What does torch.cat make of an empty list?",
    breaks=("zero",),
)  # fmt: skip
def generate_by_joining_new_ids(model, ids, new_tokens, context_length):
    new, text = [], ids
    for _ in range(new_tokens):
        new.append(model(text[:, -context_length:])[:, -1].argmax(dim=-1, keepdim=True))
        text = torch.cat([text, new[-1]], dim=1)
    return torch.cat([ids, torch.cat(new, dim=1)], dim=1)


@mistake(
    "generate", "window-written-over", "The caller's ids are written over",
    hint="Is a slice of a tensor a copy, or the same memory?",
    breaks=("unchanged",),
)  # fmt: skip
def generate_in_the_callers_memory(model, ids, new_tokens, context_length):
    text, window = ids.clone(), ids[:, -context_length:]
    for _ in range(new_tokens):
        next_ids = model(window)[:, -1:].argmax(dim=-1)
        text = torch.cat([text, next_ids], dim=1)
        if window.shape[1] < context_length:
            window = torch.cat([window, next_ids], dim=1)
        else:
            window[:, :-1] = window[:, 1:].clone()
            window[:, -1:] = next_ids
    return text


mistake(
    "generate", "model-made-double", "The model's weights become float64",
    hint="Who else holds the model that you were given?",
    breaks=("unchanged",),
    change={"for _ in": "model.double()\n    for _ in"},
)  # fmt: skip

common_mistakes("generate", "squeezed", "nothing-returned")


@accepted("generate", "no-grad", "Without gradients, in eval mode, with progress printed")
@torch.no_grad()
def generate_without_gradients(model, ids, new_tokens, context_length):
    model.eval()
    device = next(model.parameters()).device
    ids = ids.to(device)
    for step in range(new_tokens):
        start = max(0, ids.size(1) - context_length)
        probabilities = torch.softmax(model(ids[:, start:])[:, -1, :], dim=-1)
        ids = torch.cat((ids, torch.argmax(probabilities, dim=-1, keepdim=True)), dim=-1)
        print(f"{step + 1} of {new_tokens}")
    return ids


@accepted("generate", "filled-in", "A tensor of the whole length is made first, and filled in")
def generate_into_a_buffer(model, ids, new_tokens, context_length):
    batch, tokens = ids.shape
    text = torch.zeros(batch, tokens + new_tokens, dtype=torch.long, device=ids.device)
    text[:, :tokens] = ids
    for end in range(tokens, tokens + new_tokens):
        visible = text[:, max(end - context_length, 0) : end]
        text[:, end] = model(visible)[:, -1].max(dim=-1).indices
    return text


@accepted("generate", "row-by-row", "Row by row, in lists of Python's integers")
def generate_row_by_row(model, ids, new_tokens, context_length):
    rows = ids.tolist()
    for row in rows:
        for _ in range(new_tokens):
            logits = model(torch.tensor([row[-context_length:]]))[0, -1].tolist()
            row.append(logits.index(max(logits)))
    return torch.tensor(rows)


@accepted("generate", "recursion", "The function calls itself with one id more")
def generate(model, ids, new_tokens, context_length):
    if new_tokens == 0:
        return ids
    following = model(ids[:, -context_length:])[:, -1].topk(1).indices
    return generate(model, torch.hstack([ids, following]), new_tokens - 1, context_length)


@accepted("generate", "window", "A window moves along, and new ids are joined at the end")
def generate_with_a_window(model, ids, new_tokens, context_length):
    window, columns = ids[:, -context_length:], [ids]
    while len(columns) <= new_tokens:
        with torch.inference_mode():
            likeliest = model(window)[:, -1].argmax(-1).unsqueeze(-1)
        columns.append(likeliest)
        window = torch.cat([window, likeliest], dim=-1)[:, -context_length:]
    return torch.cat(columns, dim=-1)


@accepted("generate", "queue", "A queue of visible ids for each row, and NumPy's argmax")
def generate_with_queues(model, ids, new_tokens, context_length):
    texts = []
    for prompt in ids:
        seen, text = deque(prompt.tolist(), maxlen=context_length), prompt.tolist()
        for _ in range(new_tokens):
            logits = model(torch.tensor(list(seen)).view(1, -1)).detach().numpy()
            best = int(logits[0, -1].argmax())
            seen.append(best)
            text.append(best)
        texts.append(torch.tensor(text))
    return torch.stack(texts)


@accepted("generate", "padded", "The text is padded by one id, which is then overwritten")
def generate_by_padding(model, ids, new_tokens, context_length):
    text = ids.clone()
    for _ in range(new_tokens):
        order = model(text[:, -context_length:]).sort(dim=-1, descending=True).indices
        text = F.pad(text, (0, 1))
        text[:, -1] = order[:, -1, 0]
    return text


@accepted("generate", "other-order", "The arguments in another order, by their names")
def generate_from_a_prompt(idx, model, max_new_tokens, context_size):
    for _ in range(max_new_tokens):
        logits = model(idx[:, -context_size:])
        idx = torch.cat([idx, logits[:, -1, :].argmax(dim=-1, keepdim=True)], dim=1)
    return idx


@accepted("generate", "left-in-training", "The model is put back into training mode")
def generate_and_train_on(model, ids, new_tokens, context_length):
    model.eval()
    for _ in range(new_tokens):
        logits = model(ids[..., -context_length:])
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], 1)
    model.train()
    return ids


# --- sample_next ---------------------------------------------------------------------------------

TOP_K = "left_out = logits.argsort(descending=True)[top_k:]"
FILL_K = "logits = logits.index_fill(0, left_out, -torch.inf)"
SOFTMAX = "probs = torch.softmax(logits, dim=-1)"
TOP_P = "order[sum_before >= top_p]"
FILL_P = f"probs = probs.index_fill(0, {TOP_P}, 0.0)"
RENORMALISE = "        probs = probs / probs.sum()\n"
HIT = "torch.nonzero(probs.cumsum(dim=-1) > u)"
LAST = "return int(torch.nonzero(probs)[-1])"

mistake(
    "sample_next", "sorted-order", "The ids lie on the line by probability, not in order of ids",
    hint="Which id lies at the left end of the line: id 0, or the most probable one?",
    change={
        f"    hit = {HIT}": (
            "    probs, ids = probs.sort(descending=True)\n"
            f"    hit = {HIT}"
        ),
        "int(torch.nonzero(probs)[-1])": "int(ids[torch.nonzero(probs)[-1]])",
        "int(hit[0])": "int(ids[hit[0]])",
    },
)  # fmt: skip

mistake(
    "sample_next", "rank-returned", "The rank is returned, not the id",
    hint="After sorting, which id does the first place belong to?",
    change={
        f"    hit = {HIT}": (
            f"    probs = probs.sort(descending=True).values\n    hit = {HIT}"
        ),
    },
)  # fmt: skip

mistake(
    "sample_next", "not-renormalised", "After top_p, the probabilities no longer sum to 1",
    hint="What do the probabilities of the kept ids sum to, and what does a large u hit?",
    change={RENORMALISE: ""},
)  # fmt: skip

mistake(
    "sample_next", "top-k-not-renormalised", "After top_k, the probabilities no longer sum to 1",
    hint="Which comes first, top_k or the softmax?",
    change={
        FILL_K: "kept = torch.ones_like(logits).index_fill(0, left_out, 0.0)",
        SOFTMAX: (
            f"{SOFTMAX}\n"
            "    if top_k is not None and top_k < len(logits):\n"
            "        probs = probs * kept"
        ),
        RENORMALISE: "",
    },
)  # fmt: skip

mistake(
    "sample_next", "last-one-dropped", "The id that reaches top_p is dropped",
    hint="With probabilities 0.4 and 0.3 and top_p = 0.65: does 0.4 alone reach it?",
    change={TOP_P: "order[1:][largest.cumsum(dim=-1)[1:] >= top_p]"},
)  # fmt: skip

mistake(
    "sample_next", "all-dropped", "The id that reaches top_p is dropped, even if it is the first",
    hint="How many ids are kept at least?",
    change={TOP_P: "order[largest.cumsum(dim=-1) >= top_p]"},
)  # fmt: skip

mistake(
    "sample_next", "all-dropped-and-none-found",
    "The id that reaches top_p is dropped, even if it is the first",
    hint="How many ids are kept at least?",
    change={
        TOP_P: "order[largest.cumsum(dim=-1) >= top_p]",
        "    if len(hit) == 0:": "    if len(hit) == 0 and not probs.isnan().any():",
    },
)  # fmt: skip

mistake(
    "sample_next", "all-dropped-and-no-last",
    "The id that reaches top_p is dropped, even if it is the first",
    hint="How many ids are kept at least?",
    change={
        TOP_P: "order[largest.cumsum(dim=-1) >= top_p]",
        LAST: "return int(torch.nonzero(probs > 0)[-1])",
    },
)  # fmt: skip

mistake(
    "sample_next", "all-dropped-and-zero-found",
    "The id that reaches top_p is dropped, even if it is the first",
    hint="How many ids are kept at least?",
    change={
        TOP_P: "order[largest.cumsum(dim=-1) >= top_p]",
        f"    hit = {HIT}": f"    if probs.isnan().any():\n        return 0\n    hit = {HIT}",
    },
)  # fmt: skip

mistake(
    "sample_next", "all-dropped-and-no-largest",
    "The id that reaches top_p is dropped, even if it is the first",
    hint="How many ids are kept at least?",
    change={
        TOP_P: "order[largest.cumsum(dim=-1) >= top_p]",
        LAST: "return int(torch.nonzero(probs > 0).max())",
    },
)  # fmt: skip

mistake(
    "sample_next", "all-dropped-and-last-of-all-found",
    "The id that reaches top_p is dropped, even if it is the first",
    hint="How many ids are kept at least?",
    change={
        TOP_P: "order[largest.cumsum(dim=-1) >= top_p]",
        f"    hit = {HIT}": (
            f"    if probs.isnan().any():\n        return len(logits) - 1\n    hit = {HIT}"
        ),
    },
)  # fmt: skip


mistake(
    "sample_next", "two-kept-at-least", "top_p keeps two ids at least",
    hint="If the most probable id alone reaches top_p, how many ids are the fewest?",
    change={TOP_P: "order[2:][sum_before[2:] >= top_p]"},
)  # fmt: skip

mistake(
    "sample_next", "one-more-kept", "One id more than needed is kept by top_p",
    hint="With probabilities 0.4 and 0.3 and top_p = 0.65: how many ids are the fewest?",
    change={TOP_P: "order[1:][sum_before[:-1] >= top_p]"},
)  # fmt: skip

mistake(
    "sample_next", "top-p-before-top-k", "top_p is compared with probabilities from before top_k",
    hint="What do the probabilities sum to that you compare with top_p?",
    change={
        "    if top_k is not None": (
            "    before = torch.softmax(logits, dim=-1)\n    if top_k is not None"
        ),
        "largest, order = probs.sort": "largest, order = before.sort",
    },
)  # fmt: skip

mistake(
    "sample_next", "temperature-multiplied", "The logits are multiplied by the temperature",
    hint="Should a low temperature make differences between logits larger or smaller?",
    change={"logits / temperature": "logits * temperature"},
)  # fmt: skip

mistake(
    "sample_next", "temperature-ignored", "The temperature changes nothing",
    hint="Which line divides by the temperature?",
    change={"logits / temperature": "logits * 1.0"},
)  # fmt: skip

mistake(
    "sample_next", "temperature-capped", "A temperature above 1 counts as 1",
    hint="What should a temperature of 5 do to the logits?",
    change={"logits / temperature": "logits / min(temperature, 1.0)"},
)  # fmt: skip

mistake(
    "sample_next", "temperature-on-probabilities", "The probabilities are divided, not the logits",
    hint="After dividing by the sum, what is left of a factor that all probabilities have?",
    change={
        "logits / temperature": "logits * 1.0",
        SOFTMAX: f"{SOFTMAX} / temperature\n    probs = probs / probs.sum()",
    },
    same_as={"temperature-ignored": "a factor that all have is gone after the division"},
)  # fmt: skip

mistake(
    "sample_next", "probabilities-divided", "The probabilities are divided, not the logits",
    hint="What do the probabilities sum to once they are divided by 0.5?",
    change={"logits / temperature": "logits * 1.0", SOFTMAX: f"{SOFTMAX} / temperature"},
)  # fmt: skip

mistake(
    "sample_next", "powers-not-renormalised",
    "Powers of the probabilities are taken, and they no longer sum to 1",
    hint="What do the squares of 0.4 and 0.6 sum to?",
    change={
        "logits / temperature": "logits * 1.0",
        SOFTMAX: f"{SOFTMAX} ** (1 / temperature)",
    },
)  # fmt: skip

mistake(
    "sample_next", "powers-of-probabilities",
    "The temperature comes after the softmax, where a probability may be 0 already",
    hint="Two logits are 400 apart: what does a temperature of 200 make of their probabilities?",
    breaks=("large",),
    change={
        "logits / temperature": "logits * 1.0",
        SOFTMAX: f"{SOFTMAX} ** (1 / temperature)\n    probs = probs / probs.sum()",
    },
)  # fmt: skip

mistake(
    "sample_next", "temperature-at-the-end", "The temperature comes after top_p",
    hint="Are the probabilities that top_p is compared with those of step 1, or of raw logits?",
    change={
        "    logits = logits / temperature\n": "",
        RENORMALISE: "",
        f"    hit = {HIT}": (
            "    probs = torch.softmax(probs.log() / temperature, dim=-1)\n"
            f"    hit = {HIT}"
        ),
    },
)  # fmt: skip

mistake(
    "sample_next", "root-of-the-temperature", "The logits are divided by the temperature's root",
    hint="By what does the first step divide?",
    change={"logits / temperature": "logits / temperature**0.5"},
)  # fmt: skip

mistake(
    "sample_next", "smallest-kept", "The smallest logits are kept",
    hint="In which order does your sort put the logits, and which end do you keep?",
    change={TOP_K: TOP_K.replace("descending=True", "")},
)  # fmt: skip

mistake(
    "sample_next", "one-kept-too-many", "One id more than top_k is kept",
    hint="How many ids are left for top_k = 1?",
    change={"[top_k:]": "[top_k + 1 :]"},
)  # fmt: skip

mistake(
    "sample_next", "one-kept-too-few", "One id fewer than top_k is kept",
    hint="How many ids are left for top_k = 2?",
    change={"[top_k:]": "[max(top_k - 1, 1) :]"},
)  # fmt: skip

mistake(
    "sample_next", "one-taken-for-none", "A top_k of 1 keeps all ids",
    hint="How many ids are left for top_k = 1?",
    change={"top_k is not None and": "top_k is not None and 1 <"},
)  # fmt: skip

mistake(
    "sample_next", "first-ids-kept", "The first top_k ids are kept, and not the largest logits",
    hint="Does your line look at the logits at all?",
    change={TOP_K: "left_out = torch.arange(top_k, len(logits))"},
)  # fmt: skip

mistake(
    "sample_next", "dropped-logits-zero",
    "Dropped logits become 0, which is a logit like any other",
    hint="What does a softmax make of a logit of 0, and of which logit does it make 0?",
    change={FILL_K: FILL_K.replace("-torch.inf", "0.0")},
)  # fmt: skip

mistake(
    "sample_next", "top-k-ignored", "top_k changes nothing",
    hint="Where does what you drop become something that nothing hits?",
    change={FILL_K: "pass"},
)  # fmt: skip

mistake(
    "sample_next", "top-p-ignored", "top_p changes nothing",
    hint="Where does what you drop become something that nothing hits?",
    change={FILL_P: "pass"},
)  # fmt: skip

mistake(
    "sample_next", "nothing-reaches-one",
    "With a top_p of 1, it fails where rounding leaves no sum that reaches it",
    hint="Which sum can the probabilities have in float32, if not exactly 1?",
    breaks=("none",),
    change={
        "sum_before = largest.cumsum(dim=-1) - largest": (
            "reached = torch.nonzero(largest.cumsum(dim=-1) >= top_p)[0]"
        ),
        "order[sum_before >= top_p]": "order[reached + 1 :]",
    },
)  # fmt: skip

mistake(
    "sample_next", "each-above-top-p", "Only ids are kept whose own probability reaches top_p",
    hint="Is it one probability that should reach top_p, or a sum?",
    change={TOP_P: "order[1:][largest[1:] < top_p]"},
)  # fmt: skip

mistake(
    "sample_next", "least-probable-first", "top_p keeps the least probable ids",
    hint="Which ids does the sum begin with?",
    change={"probs.sort(descending=True)": "probs.sort()"},
)  # fmt: skip

mistake(
    "sample_next", "dropped-by-rank", "Ranks are taken for ids when top_p drops some",
    hint="After sorting, which id is at place 2? What does `order` know?",
    change={TOP_P: "torch.nonzero(sum_before >= top_p)[:, 0]"},
)  # fmt: skip

mistake(
    "sample_next", "in-order-of-ids", "top_p adds up in order of ids, and not the largest first",
    hint="Which ids are the fewest that reach top_p?",
    change={"probs.sort(descending=True)": "(probs, torch.arange(len(probs)))"},
)  # fmt: skip

mistake(
    "sample_next", "top-p-the-other-way", "1 - top_p is kept",
    hint="How many ids does a top_p of 0.9 keep: nearly all, or few?",
    change={"sum_before >= top_p": "sum_before >= 1 - top_p"},
)  # fmt: skip

mistake(
    "sample_next", "no-sum", "A single probability is compared with u, not the sum so far",
    hint="Where on the line does the piece of id 2 begin?",
    change={"probs.cumsum(dim=-1) > u": "probs > u"},
)  # fmt: skip

mistake(
    "sample_next", "one-further", "The id after the one that is hit is returned",
    hint="If u = 0.05 and id 0 has probability 0.1: which id is hit?",
    change={"return int(hit[0])": "return min(int(hit[0]) + 1, len(probs) - 1)"},
)  # fmt: skip

mistake(
    "sample_next", "last-below", "The last id whose sum is not above u is returned",
    hint="If u = 0.05 and id 0 has probability 0.1: which id is hit?",
    change={"return int(hit[0])": "return max(int(hit[0]) - 1, 0)"},
)  # fmt: skip

mistake(
    "sample_next", "last-above", "The last id with a sum above u is returned",
    hint="Many sums are above u: which of them comes first?",
    change={"return int(hit[0])": "return int(hit[-1])"},
)  # fmt: skip

mistake(
    "sample_next", "from-the-other-end", "The line is walked from its right end",
    hint="Which id does u = 0.01 hit: the first, or the last?",
    change={"cumsum(dim=-1) > u": "cumsum(dim=-1) > 1 - u"},
)  # fmt: skip

mistake(
    "sample_next", "always-the-largest", "The most probable id is chosen, whatever u is",
    hint="What does u do in your code?",
    change={f"hit = {HIT}": "hit = probs.argmax()[None]"},
)  # fmt: skip

mistake(
    "sample_next", "least-probable", "At temperature 0, the smallest logit's id is chosen",
    hint="Which logit belongs to the most probable id?",
    breaks=("greedy",),
    change={"argmax": "argmin"},
)  # fmt: skip

mistake(
    "sample_next", "draws-by-itself", "It draws a number of its own, and u is not used",
    hint="Call it twice with the same u: should the ids differ?",
    change={HIT: "torch.multinomial(probs, 1)"},
)  # fmt: skip

mistake(
    "sample_next", "no-softmax", "The logits themselves are added up, without a softmax",
    hint="Can a piece of the line have a negative width?",
    change={SOFTMAX: "probs = logits / logits.sum()"},
)  # fmt: skip

mistake(
    "sample_next", "softmax-twice", "The softmax is taken twice",
    hint="Which numbers go into the softmax: logits, or probabilities?",
    change={SOFTMAX: "probs = torch.softmax(torch.softmax(logits, dim=-1), dim=-1)"},
)  # fmt: skip

mistake(
    "sample_next", "zero-divides", "A temperature of 0 makes every logit infinite or NaN",
    hint="What is a logit divided by 0?",
    breaks=("greedy",),
    change={"    if temperature == 0:\n        return int(logits.argmax())\n": ""},
)  # fmt: skip

mistake(
    "sample_next", "zero-taken-for-one", "A temperature of 0 counts as none",
    hint="What does `if temperature` make of 0?",
    breaks=("greedy",),
    change={
        "    if temperature == 0:\n        return int(logits.argmax())\n": (
            "    temperature = temperature or 1.0\n"
        ),
    },
)  # fmt: skip

mistake(
    "sample_next", "zero-is-first", "A temperature of 0 gives id 0",
    hint="Which id has the largest logit?",
    breaks=("greedy",),
    change={"int(logits.argmax())": "0"},
)  # fmt: skip

mistake(
    "sample_next", "largest-logit-returned", "A temperature of 0 gives the logit, not its id",
    hint="What does max return, and what argmax?",
    breaks=("greedy",),
    change={"int(logits.argmax())": "int(logits.max())"},
)  # fmt: skip

mistake(
    "sample_next", "top-k-beyond-vocab", "A top_k that is larger than the vocabulary fails",
    hint="How many logits can torch.topk find among eight?",
    breaks=("none",),
    change={
        "top_k is not None and top_k < len(logits)": "top_k is not None",
        TOP_K: "left_out = torch.topk(-logits, len(logits) - top_k).indices",
    },
)  # fmt: skip

mistake(
    "sample_next", "first-dropped-id-hit", "u = 0 hits an id of probability 0",
    hint="For u = 0 and a first id that is not kept: is its sum above u?",
    breaks=("ends",),
    change={"> u)": ">= u)"},
)  # fmt: skip

mistake(
    "sample_next", "last-id-of-all",
    "Where rounding leaves no sum above u, the vocabulary's last id is returned",
    hint="Was the last id of the vocabulary kept?",
    breaks=("ends",),
    change={LAST: "return len(probs) - 1"},
)  # fmt: skip

mistake(
    "sample_next", "nothing-hit", "Where rounding leaves no sum above u, it fails",
    hint="Is the last of your sums exactly 1?",
    breaks=("ends",),
    change={"if len(hit) == 0:": "if False:"},
)  # fmt: skip

mistake(
    "sample_next", "nothing-hit-is-zero", "Where rounding leaves no sum above u, id 0 is returned",
    hint="What is the argmax of numbers that are all False?",
    breaks=("ends",),
    change={LAST: "return 0"},
)  # fmt: skip

mistake(
    "sample_next", "nothing-hit-is-the-smallest",
    "Where rounding leaves no sum above u, the least probable kept id is returned",
    hint="Which of the kept ids lies at the right end of the line?",
    breaks=("ends",),
    change={LAST: "return int(torch.where(probs > 0, probs, 2.0).argmin())"},
)  # fmt: skip

mistake(
    "sample_next", "nothing-hit-is-the-largest",
    "Where rounding leaves no sum above u, the most probable id is returned",
    hint="Which of the kept ids lies at the right end of the line?",
    breaks=("ends",),
    change={LAST: "return int(probs.argmax())"},
)  # fmt: skip

mistake(
    "sample_next", "overflow", "Large logits overflow to infinity",
    hint="What is exp(1000)? And which shift makes no exponential larger than 1?",
    breaks=("large",),
    change={SOFTMAX: "probs = logits.exp() / logits.exp().sum()"},
)  # fmt: skip

mistake(
    "sample_next", "int-in-a-vector", "The id is in a tensor with a dimension of size 1",
    hint="What is the shape of what you return?",
    breaks=("returns",),
    change={"int(hit[0])": "hit[0]", LAST: "return torch.nonzero(probs)[-1]"},
)  # fmt: skip

mistake(
    "sample_next", "probability-returned", "The probability is returned, not the id",
    hint="What does the caller want to append to the text?",
    breaks=("returns",),
    change={"int(hit[0])": "float(probs[hit[0]])"},
)  # fmt: skip

mistake(
    "sample_next", "a-float", "The id is a float",
    hint="Can a float be an index?",
    breaks=("returns",),
    change={"int(hit[0])": "float(hit[0])"},
)  # fmt: skip

mistake(
    "sample_next", "divided-in-place", "The caller's logits are divided",
    hint="What does /= do to the tensor that you were given?",
    breaks=("unchanged",),
    change={"logits = logits / temperature": "logits /= temperature"},
)  # fmt: skip

mistake(
    "sample_next", "float32-alone", "float64 logits fail",
    hint="Which dtype has a tensor that you make of zeros?",
    breaks=("dtype",),
    change={
        SOFTMAX: (
            f"{SOFTMAX}\n"
            "    collected = torch.zeros(len(probs))\n"
            "    collected[torch.arange(len(probs))] = probs\n"
            "    probs = collected"
        ),
    },
)  # fmt: skip

mistake(
    "sample_next", common="calls-torch-attention",
    change={
        SOFTMAX: (
            "eye = torch.eye(len(logits)).to(logits)\n"
            "    probs = torch.nn.functional.scaled_dot_product_attention(\n"
            "        logits.clamp(min=-1e30)[None], eye, eye, scale=1.0\n"
            "    )[0]"
        ),
    },
)  # fmt: skip

# Nothing is kept: one answer finds id 0, others the last id, and some fail.
for slug, found in (
    ("no-largest", "return int(torch.nonzero(probs > 0).max())"),
    ("zero", "return int(torch.nonzero(probs)[-1]) if probs.any() else 0"),
    ("last", "return int(torch.nonzero(probs)[-1]) if probs.any() else len(probs) - 1"),
):
    mistake(
        "sample_next", f"not-renormalised-and-all-dropped-{slug}",
        together=("not-renormalised", "all-dropped"),
        change={
            TOP_P: "order[largest.cumsum(dim=-1) >= top_p]", RENORMALISE: "", LAST: found,
        },
    )  # fmt: skip

mistake("sample_next", together=("not-renormalised", "last-one-dropped"))

mistake(
    "sample_next", together=("sorted-order", "all-dropped"),
    change={
        TOP_P: "order[largest.cumsum(dim=-1) >= top_p]",
        f"    hit = {HIT}": f"    probs, ids = probs.sort(descending=True)\n    hit = {HIT}",
        "int(torch.nonzero(probs)[-1])": "int(ids[torch.nonzero(probs)[-1]])",
        "int(hit[0])": "int(ids[hit[0]])",
    },
)  # fmt: skip

mistake("sample_next", together=("sorted-order", "last-one-dropped"))
mistake("sample_next", together=("not-renormalised", "last-id-of-all"))
mistake("sample_next", together=("not-renormalised", "all-dropped", "last-id-of-all"))


common_mistakes("sample_next", "nothing-returned")


@accepted("sample_next", "searchsorted", "A threshold for top_k, a scatter back, searchsorted")
def sample_by_search(logits, u, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return torch.argmax(logits)
    z = logits / temperature
    if top_k is not None:
        kth = torch.topk(z, min(top_k, z.numel()))[0][-1]
        z = torch.where(z < kth, torch.full_like(z, float("-inf")), z)
    p = z.softmax(0)
    if top_p is not None:
        s, i = torch.sort(p, descending=True)
        drop = torch.cumsum(s, 0) >= top_p
        drop = torch.cat([torch.zeros(1, dtype=torch.bool), drop[:-1]])
        s = s.masked_fill(drop, 0.0)
        p = torch.zeros_like(p).scatter(0, i, s)
        p = p / p.sum()
    where = torch.searchsorted(p.cumsum(0), torch.tensor(u, dtype=p.dtype), right=True)
    last = torch.nonzero(p > 0).max()
    return torch.minimum(where, last)


@accepted("sample_next", "python", "Lists and a loop, no tensor after the first line")
def sample_in_python(logits, u, temp=1.0, k=None, p=None):
    scores = logits.tolist()
    order = sorted(range(len(scores)), key=lambda i: scores[i], reverse=True)
    if temp == 0:
        return order[0]
    order = order[:k]
    top = scores[order[0]]
    weight = {i: 2.718281828459045 ** ((scores[i] - top) / temp) for i in order}
    total = sum(weight.values())
    kept, reached = [], 0.0
    for i in order:
        kept.append(i)
        reached += weight[i] / total
        if p is not None and reached >= p:
            break
    below = 0.0
    for i in sorted(kept):
        below += weight[i] / total / reached
        if below > u:
            return i
    return max(i for i in kept if weight[i] > 0)


@accepted("sample_next", "cold-is-greedy", "Temperature 0 is taken for a very low one")
def sample_cold(logits, u, temperature=1.0, top_k=None, top_p=None):
    logits = logits.double() / max(temperature, 1e-9)
    vocab = logits.size(0)
    largest, ids = logits.topk(min(top_k or vocab, vocab))
    probs = F.softmax(largest, dim=0)
    if top_p is not None:
        count = int((probs.cumsum(0) < top_p).sum()) + 1
        probs, ids = probs[:count], ids[:count]
        probs = probs / probs.sum()
    ids, back = ids.sort()
    above = probs[back].cumsum(0) > u
    if not above.any():
        return ids[probs[back] > 0][-1].item()
    return ids[above.long().argmax()].item()


@accepted("sample_next", "filters", "A function for each step, logits to -inf")
def sample_by_filters(logits, u, temperature=1.0, top_k=None, top_p=None):
    def keep_largest(z):
        if top_k is None or top_k >= len(z):
            return z
        z = z.clone()
        z[z < z.sort(descending=True).values[top_k - 1]] = -torch.inf
        return z

    def keep_nucleus(z):
        if top_p is None:
            return z
        probs = torch.softmax(z, -1)
        ahead = torch.stack([probs[probs > q].sum() for q in probs])
        return z.masked_fill(ahead >= top_p, -torch.inf)

    if temperature == 0.0:
        return logits.max(dim=-1).indices
    probs = torch.softmax(keep_nucleus(keep_largest(logits / temperature)), -1)
    total = 0.0
    chosen = -1
    for i, q in enumerate(probs.tolist()):
        if q > 0:
            chosen = i
        total += q
        if total > u:
            return i
    return chosen


accepted(
    "sample_next", "counted", "The sums that are not above u are counted",
    change={
        "return int(hit[0])": "return int((probs.cumsum(dim=-1) <= u).sum())",
    },
)  # fmt: skip


# --- CachedGPT -----------------------------------------------------------------------------------
# What fits both models as it is stands with those of GPT.

NEXT_X = "x, grown = block(x, of_block)"
SEEN = "seen = 0 if cache is None else cache[0][0].shape[2]"
REFUSED = """
        if seen + tokens > context_length:
            raise ValueError(f"{seen} + {tokens} tokens, and positions for {context_length}")
"""
WHERE = "self.position_table[seen:]"
ALL_LOGITS = "self.final_norm(x) @ self.token_table.T, new_cache"
# The halves of a block, as text to change.
HALVES = (
    "normed = block.norm1(x)\n"
    "            attended, grown = block.attention(normed, of_block)\n"
    "            h = x + attended\n"
    "            x = h + block.feed_forward(block.norm2(h))"
)
# The same with attention in steps.
STEPS = (
    "a, normed = block.attention, block.norm1(x)\n"
    "            q, k, v = (\n"
    "                w(normed).unflatten(-1, (a.num_heads, -1)).transpose(1, 2)\n"
    "                for w in (a.W_query, a.W_key, a.W_value)\n"
    "            )\n"
    "            if of_block is not None:\n"
    "                k = torch.cat([of_block[0], k], dim=2)\n"
    "                v = torch.cat([of_block[1], v], dim=2)\n"
    "            grown = (k, v)\n"
    "            hidden = torch.ones(tokens, k.shape[2], dtype=torch.bool, device=x.device)\n"
    "            hidden = hidden.triu(seen + 1)\n"
    "            scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)\n"
    "            h = x + a.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))\n"
    "            x = h + block.feed_forward(block.norm2(h))"
)

mistake(
    "CachedGPT", "four-times-as-wide", "The hidden layer is 4 · d_model wide, whatever was asked",
    hint="Where does d_hidden come in?",
    change={"num_heads, d_hidden) for": "num_heads, 4 * d_model) for"},
)  # fmt: skip

mistake(
    "CachedGPT", "post-norm", "Norms come after attention and feed-forward layer, and not before",
    hint="In GPT-2, what does attention get: x, or norm1(x)?",
    change={
        NEXT_X: (
            "attended, grown = block.attention(x, of_block)\n"
            "            h = block.norm1(x + attended)\n"
            "            x = block.norm2(h + block.feed_forward(h))"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "positions-restart", "Positions start at 0 again after a cache",
    hint="After five tokens, at which position stands the next one?",
    change={WHERE: "self.position_table"},
)  # fmt: skip

mistake(
    "CachedGPT", "positions-one-too-far", "After a cache, positions go on one too far",
    hint="Two tokens are in the cache: which positions are taken?",
    change={WHERE: "self.position_table.roll(-1, 0)[seen:] if seen else self.position_table"},
    # At the end of the table the first row comes again, so that nothing fails.
)  # fmt: skip

mistake(
    "CachedGPT", "positions-one-too-short", "After a cache, the last position comes twice",
    hint="Two tokens are in the cache: which positions are taken?",
    change={WHERE: "self.position_table[max(seen - 1, 0) :]"},
)  # fmt: skip

mistake(
    "CachedGPT", "heads-for-tokens", "The number of heads is taken for that of the tokens seen",
    hint="Keys have four axes: which of them grows from step to step?",
    change={SEEN: SEEN.replace("shape[2]", "shape[1]")},
)  # fmt: skip

mistake(
    "CachedGPT", "batch-for-tokens", "The size of the batch is taken for the number of tokens seen",
    hint="Keys have four axes: which of them grows from step to step?",
    change={SEEN: SEEN.replace("shape[2]", "shape[0]")},
)  # fmt: skip

mistake(
    "CachedGPT", "width-for-tokens", "The width of a head is taken for the number of tokens seen",
    hint="Keys have four axes: which of them grows from step to step?",
    change={SEEN: SEEN.replace("shape[2]", "shape[3]")},
)  # fmt: skip

mistake(
    "CachedGPT", "one-position-for-a-chunk", "All tokens of a chunk get the position of the first",
    hint="Three tokens come after five: which positions have they?",
    change={WHERE: "(self.position_table[seen : seen + 1].expand(tokens, -1) if seen else "
                   "self.position_table)"},
)  # fmt: skip

mistake(
    "CachedGPT", "no-position", "Positions are not added",
    hint="How does a block learn where a token stands?",
    change={"embed_tokens(ids, self.token_table, self.position_table[seen:])": (
        "self.token_table[ids]"
    )},
)  # fmt: skip

mistake(
    "CachedGPT", "no-position-after-a-cache", "After a cache, positions are not added",
    hint="How does a block learn where a new token stands?",
    change={WHERE: "self.position_table * (seen == 0)"},
)  # fmt: skip

mistake(
    "CachedGPT", "slice-beyond-the-end", "A single token beyond the context gets no position",
    hint="What does a slice of a table give that starts at the table's end?",
    breaks=("context",),
    change={
        REFUSED: "\n",
        "embed_tokens(ids, self.token_table, self.position_table[seen:])": (
            "self.token_table[ids] + (self.position_table[seen : seen + tokens] "
            "if seen < context_length else self.position_table[:1] * 0)"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "empty-slice-added", "Beyond the context, an empty slice of the table is summed",
    hint="What does a slice of a table give that starts at the table's end?",
    breaks=("context",),
    change={
        REFUSED: "\n",
        "embed_tokens(ids, self.token_table, self.position_table[seen:])": (
            "self.token_table[ids] + nn.functional.pad("
            "self.position_table[seen : seen + tokens], "
            "(0, 0, 0, max(0, seen + tokens - max(seen, context_length))))[:tokens]"
        ),
    },
    same_as={"slice-beyond-the-end": "no position is no position"},
)  # fmt: skip

mistake(
    "CachedGPT", "new-tokens-alone-counted", "Only the new tokens may not exceed the context",
    hint="Which tokens need a position: only the new ones?",
    breaks=("context",),
    change={
        "if seen + tokens > context_length": "if tokens > context_length",
        WHERE: "self.position_table.roll(-seen, 0)",
    },
)  # fmt: skip

mistake(
    "CachedGPT", "oldest-forgotten", "Beyond the context, positions stop at the last one",
    hint="What should a caller hear whose old and new tokens are more than context_length?",
    breaks=("context",),
    change={
        REFUSED: (
            "\n        where = torch.arange(seen, seen + tokens)"
            ".clamp(max=context_length - 1)\n"
        ),
        WHERE: "self.position_table[where]",
    },
)  # fmt: skip

mistake(
    "CachedGPT", "new-tokens-alone-counted-to-the-last",
    "Beyond the context, positions stop at the last one",
    hint="What should a caller hear whose old and new tokens are more than context_length?",
    breaks=("context",),
    change={
        "if seen + tokens > context_length": "if tokens > context_length",
        WHERE: (
            "self.position_table["
            "torch.arange(seen, seen + tokens).clamp(max=context_length - 1)]"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "context-refused-too-early", "The last position is never used",
    hint="May old and new tokens be exactly context_length?",
    change={"if seen + tokens > context_length": "if seen + tokens >= context_length"},
)  # fmt: skip

mistake(
    "CachedGPT", "batches-of-32", "A batch of more than 32 texts fails",
    hint="For how many texts does your cache have room, and who said so?",
    change={
        "_batch, tokens = ids.shape": (
            "batch, tokens = ids.shape\n"
            "        if batch > 32:\n"
            "            raise ValueError('the cache has room for 32 texts')"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "ids-as-the-cache", "The ids are kept, and everything is computed again",
    hint="How often is the first token projected while ten more are written?",
    breaks=("cost",),
    change={
        "_batch, tokens = ids.shape": (
            "if cache is not None:\n"
            "            ids, new = torch.cat([cache, ids], dim=1), ids.shape[1]\n"
            "        else:\n"
            "            new = ids.shape[1]\n"
            "        old, cache = ids, None\n"
            "        _batch, tokens = ids.shape"
        ),
        ALL_LOGITS: "(self.final_norm(x) @ self.token_table.T)[:, -new:], old",
    },
)  # fmt: skip

mistake(
    "CachedGPT", "embeddings-as-the-cache",
    "The embedding is kept, and the blocks compute everything again",
    hint="How often is the first token projected while ten more are written?",
    breaks=("cost",),
    change={
        SEEN: "seen = 0 if cache is None else cache.shape[1]",
        "past = [None] * len(self.blocks) if cache is None else cache": (
            "past = [None] * len(self.blocks)"
        ),
        "new_cache = []": (
            "x = x if cache is None else torch.cat([cache, x], dim=1)\n        kept = x"
        ),
        "            new_cache.append(grown)\n": "",
        ALL_LOGITS: "(self.final_norm(x) @ self.token_table.T)[:, -tokens:], kept",
    },
    same_as={"ids-as-the-cache": "all is computed again, from ids or from vectors"},
)  # fmt: skip

mistake(
    "CachedGPT", "inputs-of-blocks-as-the-cache",
    "Every block keeps what came into it, and projects all of it again",
    hint="Which of a block's products are made again for the past at every step?",
    breaks=("cost",),
    change={
        SEEN: "seen = 0 if cache is None else cache[0].shape[1]",
        NEXT_X: (
            "grown = x if of_block is None else torch.cat([of_block, x], dim=1)\n"
            "            h = x + block.attention(block.norm1(grown))[0][:, -tokens:]\n"
            "            x = h + block.feed_forward(block.norm2(h))"
        ),
    },
    same_as={"ids-as-the-cache": "what was projected once is projected again"},
)  # fmt: skip

mistake(
    "CachedGPT", "no-cache-used", "The past is not looked at",
    hint="What does a new token see of the tokens before it?",
    change={NEXT_X: "x, grown = block(x)"},
)  # fmt: skip

mistake(
    "CachedGPT", "only-new-keys-kept", "The cache holds the tokens of the last call only",
    hint="Three steps later: where are the keys of the first token?",
    change={
        NEXT_X: (
            "x, grown = block(x, of_block)\n"
            "            grown = tuple(part[:, :, -tokens:] for part in grown)"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "old-cache-returned", "The cache that came in is returned as it was",
    hint="How many tokens does the cache hold after this step?",
    change={ALL_LOGITS: f"{ALL_LOGITS.removesuffix('new_cache')}cache or new_cache"},
)  # fmt: skip

mistake(
    "CachedGPT", "cache-not-returned", "The cache is not returned",
    hint="Where does the next step get the keys of this one?",
    breaks=("returns",),
    change={ALL_LOGITS: "self.final_norm(x) @ self.token_table.T"},
)  # fmt: skip

mistake(
    "CachedGPT", "none-for-the-cache", "What comes back for a cache is None",
    hint="Where does the next step get the keys of this one?",
    change={ALL_LOGITS: f"{ALL_LOGITS.removesuffix('new_cache')}None"},
)  # fmt: skip

mistake(
    "CachedGPT", "cache-first", "The cache is returned first, and then the logits",
    hint="Which of the two results comes first?",
    breaks=("returns",),
    change={ALL_LOGITS: "new_cache, self.final_norm(x) @ self.token_table.T"},
)  # fmt: skip

mistake(
    "CachedGPT", "all-logits-returned", "The logits of the past come back, too",
    hint="For which tokens are logits asked?",
    breaks=("returns",),
    change={
        ALL_LOGITS: (
            "nn.functional.pad(self.final_norm(x) @ self.token_table.T, (0, 0, seen, 0)), new_cache"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "last-logits-only", "Only the last token's logits come back",
    hint="A chunk of three tokens comes in: how many rows of logits are asked for?",
    breaks=("returns",),
    change={ALL_LOGITS: "(self.final_norm(x) @ self.token_table.T)[:, -1:], new_cache"},
)  # fmt: skip

mistake(
    "CachedGPT", "first-blocks-cache-for-all", "All blocks read the first block's cache",
    hint="Do two blocks have the same keys?",
    change={NEXT_X: "x, grown = block(x, past[0])"},
)  # fmt: skip

mistake(
    "CachedGPT", "last-blocks-cache-kept", "The last block's keys and values are kept for all",
    hint="Do two blocks have the same keys?",
    change={
        "new_cache.append(grown)": "new_cache = [grown] * len(self.blocks)",
    },
)  # fmt: skip

mistake(
    "CachedGPT", "cache-goes-from-block-to-block", "A block gets the cache that the last one made",
    hint="Whose keys does a block need?",
    change={
        "for block, of_block in zip(self.blocks, past, strict=True)": (
            "of_block = past[-1]\n        for block in self.blocks"
        ),
        NEXT_X: (
            "x, grown = block(x, of_block)\n"
            "            of_block = grown if seen else None"
        ),
    },
    breaks=("computes",),
)  # fmt: skip

mistake(
    "CachedGPT", "cache-reversed", "The cache comes out last block first",
    hint="In which order are the blocks' parts put in, and in which are they taken out?",
    change={ALL_LOGITS: f"{ALL_LOGITS}[::-1]"},
)  # fmt: skip

mistake(
    "CachedGPT", "keys-and-values-swapped",
    "A block's part comes out as (values, keys), and goes in as (keys, values)",
    hint="In which order do you pack the two, and in which do you unpack them?",
    change={"new_cache.append(grown)": "new_cache.append(grown[::-1])"},
)  # fmt: skip

mistake(
    "CachedGPT", "new-before-old", "New keys and values are put before the old ones",
    hint="Your mask counts on an order: which keys does it take for the last ones?",
    change={
        NEXT_X: STEPS.replace("[of_block[0], k]", "[k, of_block[0]]").replace(
            "[of_block[1], v]", "[v, of_block[1]]"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "mask-of-the-new-alone", "In a chunk, the triangle stands in the top left corner",
    hint="Which keys may the first token of the second chunk see?",
    change={NEXT_X: STEPS.replace("triu(seen + 1)", "triu(1)")},
)  # fmt: skip

mistake(
    "CachedGPT", "mask-of-the-new-alone-in-chunks",
    "In a chunk, the triangle stands in the top left corner",
    hint="Which keys may the first token of the second chunk see?",
    change={NEXT_X: STEPS.replace("triu(seen + 1)", "triu(1 if tokens > 1 else seen + 1)")},
)  # fmt: skip

mistake(
    "CachedGPT", "no-mask-after-a-cache", "After a cache, nothing hides the future",
    hint="Three tokens come at once: may the first of them see the third?",
    change={NEXT_X: STEPS.replace("triu(seen + 1)", "triu(1 if seen == 0 else seen + tokens)")},
)  # fmt: skip

mistake(
    "CachedGPT", "no-mask", "Nothing hides the future",
    hint="Which tokens does the first token see?",
    change={NEXT_X: STEPS.replace("triu(seen + 1)", "triu(seen + tokens)")},
)  # fmt: skip

mistake(
    "CachedGPT", "values-not-cached", "Keys are kept, and values are not",
    hint="What is mixed by the weights of the old tokens?",
    change={
        NEXT_X: STEPS.replace("torch.cat([of_block[1], v], dim=2)", (
            "torch.cat([of_block[1] * 0, v], dim=2)"
        )),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "past-not-scaled", "The scores are not scaled",
    hint="By what are the scores divided before the softmax?",
    change={NEXT_X: STEPS.replace(" / k.shape[-1] ** 0.5", "")},
)  # fmt: skip

mistake(
    "CachedGPT", "scaled-by-d-model", "The scores are divided by the root of d_model",
    hint="How wide is a head?",
    change={NEXT_X: STEPS.replace("k.shape[-1] ** 0.5", "x.shape[-1] ** 0.5")},
)  # fmt: skip

mistake(
    "CachedGPT", "not-normed-before-attention", "Attention gets x, and not norm1(x)",
    hint="What does attention get in a block of GPT-2?",
    change={NEXT_X: HALVES.replace("block.attention(normed, of_block)", (
        "block.attention(x, of_block)"
    ))},
)  # fmt: skip

mistake(
    "CachedGPT", "no-residual", "Attention's result replaces what came in",
    hint="What would a block whose weights are all zero give?",
    change={NEXT_X: HALVES.replace("h = x + attended", "h = attended")},
)  # fmt: skip

mistake(
    "CachedGPT", "no-second-residual", "The feed-forward network's result replaces what came in",
    hint="What is added to what the feed-forward network gives?",
    change={NEXT_X: HALVES.replace("x = h + block", "x = block")},
)  # fmt: skip

mistake(
    "CachedGPT", "no-residuals", "Blocks do not add their input",
    hint="What would a block whose weights are all zero give?",
    change={
        NEXT_X: HALVES.replace("h = x + attended", "h = attended").replace(
            "x = h + block", "x = block"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "second-shortcut-after-norm", "The second shortcut starts behind the norm",
    hint="What is added to what the feed-forward network gives: h, or what the norm made of it?",
    change={NEXT_X: HALVES.replace("x = h + block", "h = block.norm2(h)\n            x = h + block")
        .replace("feed_forward(block.norm2(h))", "feed_forward(h)")},
)  # fmt: skip

mistake(
    "CachedGPT", "batch-counted-as-tokens", "The number of texts is taken for the number of tokens",
    hint="Which of the two numbers in ids.shape counts the tokens of a text?",
    change={
        f"embed_tokens(ids, self.token_table, {WHERE})": (
            "self.token_table[ids] + self.position_table[seen : seen + ids.shape[0]]"
        ),
    },
)  # fmt: skip


mistake(
    "CachedGPT", "one-more-residual", "What goes into a block is added to its result again",
    hint="Does a block add its input by itself?",
    change={NEXT_X: f"{NEXT_X}\n            x = x + grown[1].sum() * 0 + self.position_table[0]"},
)  # fmt: skip

mistake(
    "CachedGPT", "no-feed-forward", "The feed-forward layers are left out",
    hint="What comes after attention in a block?",
    change={NEXT_X: HALVES.replace(
        "x = h + block.feed_forward(block.norm2(h))", "x = h"
    )},
)  # fmt: skip

mistake(
    "CachedGPT", "relu", "A ReLU stands where the GELU belongs",
    hint="What does the hidden layer do with a number a little below 0?",
    change={NEXT_X: HALVES.replace(
        "block.feed_forward(block.norm2(h))",
        "block.feed_forward.down(torch.relu(block.feed_forward.up(block.norm2(h))))",
    )},
)  # fmt: skip

mistake(
    "CachedGPT", "softmaxed", "Probabilities come back, and not logits",
    hint="Does the formula have a softmax?",
    change={ALL_LOGITS: "(self.final_norm(x) @ self.token_table.T).softmax(-1), new_cache"},
)  # fmt: skip

mistake(
    "CachedGPT", "one-block-for-all", "One block does the work of all layers",
    hint="How many sets of weights does your model hold?",
    change={
        """self.blocks = nn.ModuleList(
            CachedBlock(d_model, num_heads, d_hidden) for _ in range(num_layers)
        )""": (
            "block = CachedBlock(d_model, num_heads, d_hidden)\n"
            "        self.blocks = nn.ModuleList([block] * num_layers)"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "cache-kept-on-self", "The module itself remembers the past",
    hint="What happens when you continue two texts in turn?",
    breaks=("state",),
    change={
        "self.final_norm = nn.LayerNorm(d_model)": (
            "self.final_norm = nn.LayerNorm(d_model)\n        self.kept = None"
        ),
        "past = [None] * len(self.blocks) if cache is None else cache": (
            "cache = None if cache is None else self.kept\n"
            "        past = [None] * len(self.blocks) if cache is None else cache"
        ),
        ALL_LOGITS: f"{ALL_LOGITS.removesuffix('new_cache')}self.keep(new_cache)",
        "    def forward(": (
            "    def keep(self, cache):\n"
            "        self.kept = [tuple(part.detach() for part in pair) for pair in cache]\n"
            "        return cache\n\n"
            "    def forward("
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "length-kept-on-self", "The module itself counts the tokens",
    hint="What happens when you continue two texts in turn?",
    breaks=("state",),
    change={
        "self.final_norm = nn.LayerNorm(d_model)": (
            "self.final_norm = nn.LayerNorm(d_model)\n        self.count = 0"
        ),
        SEEN: "self.count = 0 if cache is None else self.count\n        seen = self.count",
        "new_cache = []": "self.count, new_cache = seen + tokens, []",
    },
    same_as={"cache-kept-on-self": "who counts remembers"},
)  # fmt: skip

mistake(
    "CachedGPT", "cache-needed", "The model cannot be called without a cache",
    hint="Where would the first cache come from?",
    breaks=("none", "computes"),
    change={"cache: Any = None": "cache"},
)  # fmt: skip

mistake(
    "CachedGPT", "none-not-understood", "Leaving the cache out works, and passing None does not",
    hint="What does your code do with a cache that is None?",
    breaks=("none",),
    change={"cache: Any = None": "cache: Any = ()", "if cache is None else cache\n": (
        "if cache == () else cache\n"
    ), "0 if cache is None else": "0 if cache == () else"},
)  # fmt: skip

mistake(
    "CachedGPT", "cache-written-in-place", "The cache that came in is written over",
    hint="Who else holds the cache that you were given?",
    breaks=("unchanged",),
    change={
        NEXT_X: (
            "x, grown = block(x, of_block)\n"
            "            if of_block is not None:\n"
            "                of_block[0].data.zero_()"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "ids-changed-in-place", "The ids are written over",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged",),
    change={
        "embed_tokens(ids,": "embed_tokens(ids.clone(),",
        "new_cache = []": "new_cache = []\n        ids.zero_()",
    },
)  # fmt: skip

mistake(
    "CachedGPT", "drops-in-training", "In training, something is dropped",
    hint="Is anything to be dropped while a model writes?",
    breaks=("dropout",),
    change={
        "del dropout": "self.dropout = nn.Dropout(dropout)\n        del dropout",
        NEXT_X: "x, grown = block(self.dropout(x), of_block)",
    },
)  # fmt: skip

mistake(
    "CachedGPT", "drops-weights-always", "Something is dropped, even in evaluation",
    hint="Is anything to be dropped while a model writes?",
    breaks=("dropout",),
    change={
        "del dropout": "self.p = dropout\n        del dropout",
        NEXT_X: "x, grown = block(nn.functional.dropout(x, self.p), of_block)",
    },
    same_as={"drops-in-training": "something is dropped"},
)  # fmt: skip

mistake(
    "CachedGPT", "drops-a-tenth", "In training, a tenth of the attention weights is dropped",
    hint="Is anything to be dropped while a model writes?",
    breaks=("computes", "dropout"),
    change={
        NEXT_X: STEPS.replace(
            "scores.softmax(-1) @",
            "nn.functional.dropout(scores.softmax(-1), 0.1, self.training) @",
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "float32-hard-coded", "The embedding is forced into float32",
    hint="Which dtype does your model compute in after .double()?",
    breaks=("dtype",),
    change={"new_cache = []": "new_cache = []\n        x = x.float().to(self.token_table.dtype)"},
)  # fmt: skip

mistake(
    "CachedGPT", "cache-in-float32", "The cache is kept in float32",
    hint="Which dtype do keys have after .double()?",
    breaks=("dtype",),
    change={
        "new_cache.append(grown)": (
            "new_cache.append(tuple(part.float().to(x.dtype) for part in grown))"
        ),
    },
)  # fmt: skip

mistake(
    "CachedGPT", "mask-on-the-cpu", "The mask is made on the CPU",
    hint="Where do the ids live, and where does a new mask?",
    breaks=("device",),
    change={NEXT_X: STEPS.replace(", device=x.device", "")},
)  # fmt: skip

mistake(
    "CachedGPT", "calls-torch-attention", "Torch's own attention does the work",
    hint="Which functions are off limits here?",
    breaks=("forbidden",),
    change={NEXT_X: STEPS.replace("scores.softmax(-1) @ v", (
        "nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~hidden)"
    ))},
)  # fmt: skip


@accepted("CachedGPT", "tuple-of-pairs", "A tuple of pairs, and fused layers")
class TupleOfPairs(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, n_hidden, block_size, dropout):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([FusedBlock(n_embd, n_head, n_hidden) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)

    def forward(self, idx, past=None):
        start = past[0][0].size(-2) if past is not None else 0
        stop = start + idx.size(1)
        assert stop <= self.wpe.num_embeddings
        x = self.wte(idx) + self.wpe(torch.arange(start, stop, device=idx.device))
        presents = ()
        for block, layer_past in zip(self.h, past or [None] * len(self.h)):  # noqa: B905
            x, present = block(x, layer_past)
            presents += (present,)
        return F.linear(self.ln_f(x), self.wte.weight), presents


@accepted("CachedGPT", "dictionaries", "A dictionary of dictionaries, with a counter")
class Dictionaries(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.limit, self.num_heads = context_length, num_heads
        self.token_table = nn.Parameter(torch.randn(vocab_size, d_model))
        self.position_table = nn.Parameter(torch.randn(context_length, d_model))
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_hidden, context_length, 0.0)  # noqa: F821
            for _ in range(num_layers)
        )
        self.last = OwnNorm(d_model)

    def forward(self, ids, cache=None):
        cache = {"seen": 0} if cache is None else cache
        seen, new = cache["seen"], ids.size(1)
        if new > self.limit - seen:
            raise RuntimeError("too many tokens")
        after = {"seen": seen + new}
        x = self.token_table[ids] + self.position_table[seen : seen + new]
        for number, block in enumerate(self.blocks):
            normed, part = block.norm1(x), block.attention
            q, k, v = (
                layer(normed).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
                for layer in (part.W_query, part.W_key, part.W_value)
            )
            old = cache.get(f"block{number}")
            if old is not None:
                k, v = torch.cat([old["k"], k], 2), torch.cat([old["v"], v], 2)
            after[f"block{number}"] = {"k": k, "v": v}
            x = x + part.out_proj(causally(q, k, v).transpose(1, 2).flatten(2))
            x = x + block.feed_forward(block.norm2(x))
        return self.last(x) @ self.token_table.T, after


@accepted("CachedGPT", "one-table", "Ids are rows of one table, below those of the positions")
class RowsBelow(nn.Module):
    def __init__(self, n_vocab, width, heads, depth, hidden, n_ctx, _p):
        super().__init__()
        self.n_ctx = n_ctx
        self.emb = nn.Embedding(n_ctx + n_vocab, width)
        self.layers = nn.ModuleList(FusedBlock(width, heads, hidden) for _ in range(depth))
        self.ln = nn.LayerNorm(width)

    def forward(self, ids, cache=None):
        seen, pairs = cache or (0, [None] * len(self.layers))
        where = torch.arange(seen, seen + ids.shape[1], device=ids.device)
        if where[-1] >= self.n_ctx:
            raise IndexError(f"position {where[-1]}")
        x, kept = self.emb(ids + self.n_ctx) + self.emb(where), []
        for layer, pair in zip(self.layers, pairs, strict=True):
            x, pair = layer(x, pair)  # noqa: PLW2901
            kept.append(pair)
        logits = F.linear(self.ln(x), self.emb.weight)[..., self.n_ctx :]
        return logits, (where.numel() + seen, kept)


@accepted("CachedGPT", "one-tensor", "One tensor of all keys and values of all blocks")
class OneTensor(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.context = context_length
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.layers = nn.ModuleList(
            [FusedBlock(d_model, num_heads, d_hidden, layer=Conv1D) for _ in range(num_layers)]
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids, cache=None):
        seen = 0 if cache is None else cache.shape[-2]
        if seen + ids.shape[1] > self.context:
            raise ValueError("beyond the context")
        where = seen + torch.arange(ids.shape[1], device=ids.device)
        x = self.embedding(ids) + self.positions(where)
        kept = []
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, None if cache is None else cache[number])
            kept.append(torch.stack(pair))
        return self.head(self.norm(x)), torch.stack(kept)


@accepted("CachedGPT", "flat-list-and-counter", "A flat list of keys and values, and a counter")
class FlatList(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.num_heads = num_heads
        self.tok_emb = nn.Embedding(vocab_size, d_model)
        self.pos_emb = nn.Embedding(context_length, d_model)
        many = range(num_layers)
        self.qkv = nn.ModuleList([nn.Linear(d_model, 3 * d_model, bias=False) for _ in many])
        self.out = nn.ModuleList([nn.Linear(d_model, d_model) for _ in many])
        self.fc1 = nn.ModuleList([nn.Linear(d_model, d_hidden) for _ in many])
        self.fc2 = nn.ModuleList([nn.Linear(d_hidden, d_model) for _ in many])
        self.ln1 = nn.ModuleList([nn.LayerNorm(d_model) for _ in many])
        self.ln2 = nn.ModuleList([nn.LayerNorm(d_model) for _ in many])
        self.ln_f = nn.LayerNorm(d_model)

    def forward(self, ids, cache=None):
        kept, seen = cache if cache is not None else ([None] * 2 * len(self.qkv), 0)
        kept, total = list(kept), seen + ids.shape[1]
        if total > len(self.pos_emb.weight):
            raise IndexError(total)
        x = self.tok_emb(ids) + self.pos_emb.weight[seen:total]
        for n, qkv in enumerate(self.qkv):
            q, k, v = qkv(self.ln1[n](x)).chunk(3, -1)
            for slot, new in ((2 * n, k), (2 * n + 1, v)):
                old = kept[slot]
                kept[slot] = new if old is None else torch.cat((old, new), 1)
            q, k, v = (
                part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
                for part in (q, kept[2 * n], kept[2 * n + 1])
            )
            x = x + self.out[n](causally(q, k, v).transpose(1, 2).flatten(2))
            x = x + self.fc2[n](F.gelu(self.fc1[n](self.ln2[n](x))))
        return self.ln_f(x) @ self.tok_emb.weight.T, (kept, total)


@accepted("CachedGPT", "room-for-all", "Room for the whole context, copied and filled")
class RoomForAll(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.heads, self.context = num_heads, context_length
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(
            [
                LectureBlock(d_model, num_heads, d_hidden, context_length, 0.0)
                for _ in range(num_layers)
            ]
        )
        self.norm_f = nn.LayerNorm(d_model)

    def forward(self, ids, state=None):
        (batch, new), table = ids.shape, self.words.weight
        if state is None:
            n, size = len(self.blocks), table.shape[1] // self.heads
            room = table.new_zeros(2, n, self.heads, batch, self.context, size)
            state = {"room": room, "filled": 0}
        filled, until = state["filled"], state["filled"] + new
        if until > self.context:
            raise OverflowError("no more room")
        at = torch.arange(filled, until, device=ids.device)
        x = table[ids] + self.places(at)
        keys, values = (list(part) for part in state["room"])
        for n, block in enumerate(self.blocks):
            normed, k, v = block.ln1(x), keys[n].clone(), values[n].clone()
            heads = block.sa.heads
            k[:, :, filled:until] = torch.stack([head.key(normed) for head in heads])
            v[:, :, filled:until] = torch.stack([head.value(normed) for head in heads])
            found = [
                causally(head.query(normed), k[h, :, :until], v[h, :, :until])
                for h, head in enumerate(heads)
            ]
            keys[n], values[n] = k, v
            x = x + block.sa.proj(torch.cat(found, -1))
            x = x + block.ffwd(block.ln2(x))
        room = torch.stack([torch.stack(keys), torch.stack(values)])
        return F.linear(self.norm_f(x), table), {"room": room, "filled": until}


@accepted("CachedGPT", "token-by-token", "Each token passes alone, and no mask is needed")
class TokenByToken(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.token_table = nn.Embedding(vocab_size, d_model)
        self.position_table = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(
            CachedBlock(d_model, num_heads, d_hidden)  # noqa: F821
            for _ in range(num_layers)  # noqa: F821
        )
        self.final_norm = nn.LayerNorm(d_model)

    def step(self, ids, cache):
        past = cache or [None] * len(self.blocks)
        seen = 0 if cache is None else cache[0][0].shape[-2]
        if seen == self.position_table.num_embeddings:
            raise ValueError("the context is full")
        x, after = self.token_table(ids) + self.position_table.weight[seen], []
        for block, kept in zip(self.blocks, past, strict=True):
            x, kept = block(x, kept)
            after.append(kept)
        return self.final_norm(x) @ self.token_table.weight.T, after

    def forward(self, ids, cache=None):
        found = []
        for one in ids.split(1, dim=1):
            logits, cache = self.step(one, cache)
            found.append(logits)
        return torch.cat(found, dim=1), cache


@accepted("CachedGPT", "two-lists", "A list of keys and a list of values, tokens first")
class TwoLists(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
    ):
        super().__init__()
        self.gpt = nn.ModuleDict(
            {
                "tokens": nn.Embedding(vocab_size, d_model),
                "positions": nn.Embedding(context_length, d_model),
                "blocks": nn.ModuleList(
                    CachedBlock(d_model, num_heads, d_hidden)  # noqa: F821
                    for _ in range(num_layers)  # noqa: F821
                ),
                "norm": OwnNorm(d_model),
            }
        )

    def forward(self, ids, cache=None):
        old_keys, old_values = cache or ([], [])
        seen = old_keys[0].shape[1] if old_keys else 0
        where = torch.arange(seen, seen + ids.shape[1], device=ids.device)
        x = self.gpt["tokens"](ids) + self.gpt["positions"](where)
        keys, values = [], []
        for n, block in enumerate(self.gpt["blocks"]):
            past = (old_keys[n].transpose(1, 2), old_values[n].transpose(1, 2)) if seen else None
            x, (k, v) = block(x, past)
            keys.append(k.transpose(1, 2).detach())
            values.append(v.transpose(1, 2).detach())
        return self.gpt["norm"](x) @ self.gpt["tokens"].weight.mT, [keys, values]


@accepted("CachedGPT", "own-gpt", "A GPT of one's own whose blocks are taken apart")
class OfOwnGPT(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.gpt = GPT(*sizes)  # noqa: F821

    def forward(self, ids, cache=None):
        gpt = self.gpt
        seen = 0 if cache is None else cache[1]
        if seen + ids.shape[1] > gpt.position_table.shape[0]:
            raise ValueError("too long")
        x, kept = gpt.token_table[ids] + gpt.position_table[seen:][: ids.shape[1]], []
        for n, block in enumerate(gpt.blocks):
            part, normed = block.attention, block.norm1(x)
            q, k, v = (
                layer(normed).unflatten(-1, (part.num_heads, -1)).transpose(1, 2)
                for layer in (part.W_query, part.W_key, part.W_value)
            )
            if cache is not None:
                k = torch.cat([cache[0][n][:, 0], k], dim=2)
                v = torch.cat([cache[0][n][:, 1], v], dim=2)
            kept.append(torch.stack([k, v], dim=1))
            x = x + part.out_proj(causally(q, k, v).transpose(1, 2).flatten(2))
            x = x + block.feed_forward(block.norm2(x))
        return gpt.final_norm(x) @ gpt.token_table.T, (kept, seen + ids.shape[1])
