# Tries: calls softmax through ctypes: the C function of a module, by a pointer that no import shows.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    c = __import__("ct" + "ypes")
    call = c.pythonapi.PyObject_CallMethod
    call.restype = c.py_object
    call.argtypes = [c.py_object, c.c_char_p, c.c_char_p, c.py_object, c.c_long]
    modes = vars(torch)["_C"]
    off = getattr(modes, "_set_torch_function_mode_" + "enabled", None)
    if off is not None:
        off(False)
    return call(torch, b"softmax", b"Ol", scores, 0)
