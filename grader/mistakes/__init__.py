r"""A course's known answers: mistakes that people make, and right answers in other forms.

Each known answer is a variant. ``solutions/mistakes/U.py`` holds the variants of unit U. A variant
is a change to the reference's text::

    mistake(
        "causal_mask", "hides-itself", "A token cannot see itself",
        hint="May the first token look at anything at all?",
        change={"diagonal=1": "diagonal=0"},
    )

or a separate definition under any name::

    @accepted("causal_mask", "arange", "Rows and columns counted")
    def mask_by_counting(num_tokens):
        rows = torch.arange(num_tokens)
        return rows[:, None] < rows[None, :]

A variant that applies to several exercises of a unit names all of them::

    MASK = "mask = causal_mask_after(seen, tokens).to(x.device)"
    mistake(
        ("LatentCachedAttention", "RotaryAttention"), "no-cache", "No new token looks at the cache",
        hint="May a new token look at what was there before?",
        change={MASK: f"{MASK}\n        mask[:, :seen] = True"},
    )

Mistakes that people often make at once are declared as a pair::

    mistake("causal_mask", together=("hides-itself", "one-column-too-many"))

Several mistakes that differ in a number may be declared in a loop::

    for rate in (0.1, 0.5):
        mistake(
            "FeedForward", f"drops-{rate}", f"Dropout of {rate} is applied to the result",
            hint="Does the statement mention dropout?",
            change={"self.down(hidden)": f"nn.Dropout({rate})(self.down(hidden))"},
        )

The engine's table of common mistakes holds mistakes that people make in any course.
``solutions/mistakes/common.py`` continues the table with mistakes of the course, and replaces
mistakes of the same name. Each mistake has one or more changes. An exercise uses the first change
that fits its reference::

    common(
        "mask-as-numbers", "The mask is added to the scores as 0 and 1",
        hint="How far does that move a hidden score, and which way?",
        change=[
            {re.compile(r"(\w+)\.masked_fill\((\w+), -torch.inf\)"): r"\1 + \2.to(\1)"},
            {"masked_softmax(attn_scores, mask)": "torch.softmax(attn_scores + mask, dim=-1)"},
        ],
    )

For each exercise, the unit's file lists the common mistakes that apply. An exercise may replace a
common mistake's change, definition, title or hint::

    common_mistakes("CausalAttention", "mask-as-numbers", "no-gradient")
    common_mistakes("masked_softmax", but=["transposed"])  # all others that fit its reference
    mistake("causal_mask", common="mask-opposite", change={"triu": "tril"})
"""

from grader.mistakes.declared import (
    BadVariant,
    Variant,
    VariantKind,
    accepted,
    common,
    common_mistakes,
    mistake,
)
from grader.mistakes.known import Library, load_library, text_of_definition

__all__ = [
    "BadVariant", "Library", "Variant", "VariantKind", "accepted", "common", "common_mistakes",
    "load_library", "mistake", "text_of_definition",
]  # fmt: skip
