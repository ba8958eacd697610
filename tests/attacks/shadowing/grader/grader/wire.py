def encode(message):
    return b''
