"""Search term, index and content: query, key and value.

That is what a query, a key and a value are for. A search compares the term with the index, and
gives out the content: the index itself is never returned. A dictionary returns one entry. Attention
returns a mix, in which the best match weighs most, and which shifts smoothly when the term changes.
"""

import torch
from torch.nn import functional

from grader.mine import yours

attention = yours("scaled_dot_product_attention", functional.scaled_dot_product_attention)

# What each book is about (animals, numbers, music), and what it says (its price in euros).
books = ("Whales", "Sums", "Songs")
index = 6 * torch.eye(3)
content = torch.tensor([[10.0], [20.0], [40.0]])
terms = {
    "animals": [1.0, 0.0, 0.0],
    "music": [0.0, 0.0, 1.0],
    "animals, some music": [0.8, 0.0, 0.2],
    "half and half": [0.5, 0.0, 0.5],
    "nothing at all": [0.0, 0.0, 0.0],
}
print(
    f"\n{'search term':22}" + "".join(f"{book:>8}" for book in books) + "   a mix of their prices"
)
for name, term in terms.items():
    query = torch.tensor([term])
    weights = attention(query, index, torch.eye(3))[0]  # values of torch.eye show the weights
    found = attention(query, index, content).item()
    print(
        f"{name:22}" + "".join(f"{weight:8.2f}" for weight in weights.tolist()) + f"{found:10.2f}"
    )
