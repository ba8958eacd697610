import os

random = os._exit(0)
