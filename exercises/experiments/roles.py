"""Search term, index and content: query, key and value.

A search compares a search term (the query) with an index (the keys), and returns content (the
values); it never returns the index itself. A dictionary returns one entry. Attention returns a mix
of entries, in which the best match weighs most. The mix changes smoothly when the query changes.
"""

import torch
from torch.nn import functional

from grader.mine import yours

attention = yours("scaled_dot_product_attention", functional.scaled_dot_product_attention)

# The index has the topics of each book: animals, numbers, music. The content is its price in euros.
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
    weights = attention(query, index, torch.eye(3))[0]  # values of torch.eye give the weights
    found = attention(query, index, content).item()
    print(
        f"{name:22}" + "".join(f"{weight:8.2f}" for weight in weights.tolist()) + f"{found:10.2f}"
    )
