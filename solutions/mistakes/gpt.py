"""Known answers of unit 12: mistakes, and right answers in other forms."""

from collections import deque

import torch
import torch.nn.functional as F

from grader.mistakes import accepted, common_mistakes, mistake

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
