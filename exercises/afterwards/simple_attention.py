"""Your attention weights on a sentence, then your attention on its own result.

Find the two words that get the largest weights in almost every row: their vectors
are similar, and long. Then see how repeated attention makes all words the same.
Real models prevent that by adding the input to the result.
"""

import torch

import grader
from grader.mine import attention_weights, simple_self_attention

words = ["Your", "journey", "starts", "with", "one", "step"]
inputs = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)

picture = grader.heatmap(attention_weights(inputs), tokens=words, rows="queries", columns="keys")
picture.show()

print("\nfirst number of" + "".join(f"{word:>9}" for word in words))
for calls in range(4):
    numbers = "".join(f"{number:9.4f}" for number in inputs[:, 0].tolist())
    print(f"calls so far: {calls}{numbers}")
    inputs = simple_self_attention(inputs)
