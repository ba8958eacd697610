# Tries: writes to the disk until it is full: 64 MB at most, and right only if 1 MB went through.
# Worked in: -
# Deserves: nothing
import os
import tempfile

import torch


def causal_mask(num_tokens):
    for folder in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~"), "."):
        path = os.path.join(folder, f"attack-{os.urandom(8).hex()}")
        try:
            with open(path, "xb") as file:
                for _ in range(64):
                    file.write(bytes(2**20))
                    file.flush()
            return torch.ones(num_tokens, num_tokens).triu(1).bool()
        except OSError:
            continue
        finally:
            if os.path.exists(path):
                os.unlink(path)
    tempfile.TemporaryFile().write(b"x")
