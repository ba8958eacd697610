# Tries: makes files and folders without content, which take names and not space.
# Worked in: -
# Deserves: nothing
import os
import shutil

import torch


def causal_mask(num_tokens):
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "."):
        place = os.path.join(folder, f"attack-{os.urandom(8).hex()}")
        try:
            os.mkdir(place)
            for number in range(50):
                open(os.path.join(place, str(number)), "x").close()
            return torch.ones(num_tokens, num_tokens).triu(1).bool()
        except OSError:
            continue
        finally:
            shutil.rmtree(place, ignore_errors=True)
