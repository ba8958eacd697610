"""What Python itself does no longer in a jail, and what right answers go on doing there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from grader.proxies.calls import StudentRaised
from grader.sandbox.jails import Warm
from grader.sandbox.session import Channel, Limits
from tests.support import seats
from tests.support.seats import OpenSeat

X = torch.arange(12.0).view(3, 4) / 7


def rows(x: Float[Tensor, "queries keys"]) -> Float[Tensor, "queries keys"]:
    return x.softmax(-1)


@pytest.fixture
def loaded(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each process of a test's submissions: whether the whole of torch is in it."""
    whole, really = [], warm.open

    def opened(limits: Limits) -> Channel:
        whole.append(limits.whole_torch)
        return really(limits)

    monkeypatch.setattr(warm, "open", opened)
    return whole


@pytest.fixture
def open_seat(warm: Warm) -> Iterator[OpenSeat]:
    opened: list[seats.Seat] = []

    def open_one(body: str, watch: tuple[str, ...] = (), *, whole: bool = True) -> seats.Seat:
        limits = Limits(whole_torch=whole)
        seat = seats.open_seat(warm.open, f"import torch\n{body}", rows, watch=watch, limits=limits)
        opened.append(seat)
        return seat

    yield open_one
    for seat in opened:
        seat.session.close()


# --- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "ctypes": "import ctypes",
    "ctypes by a computed name": "__import__('c' + 'types')",
    "ctypes of torch": "torch.ctypes.CDLL",
    "ctypes of numpy": "import numpy\n    numpy.ctypeslib.load_library",
    "its C half": "__import__('_c' + 'types')",
    "its C half, made again": (
        "import importlib.machinery as m, importlib.util as u\n"
        "    spec = m.PathFinder.find_spec('_ctypes')\n    u.module_from_spec(spec)"
    ),
    "objects of the collector": "import gc\n    gc.get_objects()",
    "who refers": "import gc\n    gc.get_referrers(torch)",
    "frames": "import sys\n    sys._getframe()",
    "frames of inspect": "import inspect\n    inspect.currentframe().f_back",
    "frames of a traceback": (
        "try:\n        1 / 0\n    except Exception as e:\n        e.__traceback__.tb_frame"
    ),
    "frames that traceback walks": (
        "import traceback\n    try:\n        1 / 0\n"
        "    except Exception as e:\n        list(traceback.walk_tb(e.__traceback__))"
    ),
    "frames of a generator": "(i for i in ()).gi_frame",
    "a tracer": "import sys\n    sys.settrace(print)",
    "a profiler": "import sys\n    sys.setprofile(print)",
    "code of a function": "torch.nn.functional.softmax.__code__ = (lambda: 0).__code__",
    "the static runtime": "torch._C._jit_to_static_module",
    "TorchScript": "torch._C._jit_script_compile",
    "torch's C module made again": (
        "import sys, importlib\n    del sys.modules['torch._C']\n"
        "    importlib.import_module('torch._C')._jit_pass_inline(0)"
    ),
    "modules of torch": "import torch.utils.benchmark as b\n    b.Timer()",
    "modules of torch with no hooks": (
        "import sys\n    sys.meta_path[:] = sys.meta_path[-2:]\n    import torch.utils.benchmark"
    ),
    "a mode popped in C": "torch.device('cpu').__exit__(None, None, None)",
    "a class that is asked below the count": (
        "class Below(torch.Tensor):\n"
        "        @classmethod\n"
        "        def __torch_dispatch__(cls, f, types, args=(), kwargs=None):\n"
        "            return x * 2\n"
        "    below = torch.Tensor._make_wrapper_subclass(Below, (2,))\n    below + 1"
    ),
    "torch's own text": "open(torch.nn.functional.__file__)",
    "a kernel by its key": (
        "key = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)\n"
        "    torch.ops.aten.exp.default.redispatch(key, x)"
    ),
    "modes switched off": "torch.utils._python_dispatch._pop_mode()",
    "functions switched off": "torch.overrides._pop_mode()",
    "the dispatcher switched off": "torch._C._DisableTorchDispatch()",
    "the kit's own modules": "import grader.guest.trace",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_what_no_answer_needs_is_refused_with_an_ordinary_exception(
    open_seat: OpenSeat, body: str
) -> None:
    end = "()" if body.endswith(("_module", "_compile", "CDLL", "load_library")) else ""
    student = open_seat(f"def rows(x):\n    {body}{end}\n    return x.softmax(-1)").student()
    with pytest.raises(StudentRaised) as raised:
        student.rows.observe(X)
    assert raised.value.ordinary


def test_frames_stay_refused_after_the_kit_itself_has_looked_at_some(open_seat: OpenSeat) -> None:
    body = "import sys\ndef rows(x):\n    return x.softmax(-1) * sys._getframe(0).f_lineno"
    seat = open_seat(body, watch=("softmax",))
    for _ in range(2):  # the use of softmax is noted with its line, and so is the exception
        with pytest.raises(StudentRaised, match="frames are unavailable"):
            seat.student().rows(X)
    assert seat.calls.uses("rows")


def test_the_kits_own_modules_are_on_no_list(open_seat: OpenSeat) -> None:
    body = (
        "import sys\ndef rows(x):\n"
        "    ours = [n for n in sys.modules if n.startswith('grader')]\n"
        "    ours += [n for n in vars(sys.modules['__main__']) if not n.startswith('__')]\n"
        "    assert not ours, ours\n    return x.softmax(-1)"
    )
    torch.testing.assert_close(open_seat(body).student().rows(X), X.softmax(-1))


# --- what right answers do -----------------------------------------------------------------------

USEFUL = {
    "seeds": "torch.manual_seed(123), torch.seed()",
    "anomalies": ("with torch.autograd.set_detect_anomaly(True):\n        (x * 1).sum()"),
    "no gradients, by a decorator": (
        "@torch.no_grad()\n    def twice(x):\n        return x * 2\n    twice(x)"
    ),
    "a default device": "torch.set_default_device('cpu'), torch.set_default_device(None)",
    "TorchScript as a decorator": (
        "@torch.jit.script\n    def twice(x):\n        return x * 2\n    twice(x)"
    ),
    "torch.compile as a decorator": (
        "@torch.compile\n    def twice(x):\n        return x * 2\n    twice(x)"
    ),
    "torch.compile with options": "torch.compile(torch.exp, mode='max-autotune')(x)",
    "a compiled module": (
        "layer = torch.nn.Identity()\n    layer.compile()\n    torch.compile(layer)(layer(x))"
    ),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "    with ThreadPoolExecutor(2) as pool:\n        list(pool.map(torch.exp, x))"
    ),
    "functorch": "from functorch import vmap\n    vmap(torch.exp)(x)",
    "a stack in words": "import traceback\n    traceback.print_stack()",
    "scatters on meta": (
        "m = x.to('meta')\n"
        "    torch.slice_scatter(m, m[:1], 0, 0, 1), torch.select_scatter(m, m[0], 0, 0)\n"
        "    torch.diagonal_scatter(m, m.diagonal())"
    ),
    "a plain subclass": (
        "class Own(torch.Tensor):\n        @classmethod\n"
        "        def __torch_function__(cls, f, types, args=(), kwargs=None):\n"
        "            with torch._C.DisableTorchFunction():\n"
        "                return f(*args, **(kwargs or {}))\n"
        "    x.as_subclass(Own) * 2"
    ),
    "vmap": "return torch.func.vmap(lambda row: row.softmax(-1))(x)",
    "jacobian": "torch.func.jacrev(lambda row: row * row)(x[0])",
    "gradients": "torch.func.grad(lambda t: (t * t).sum())(x)",
    "checkpoint": (
        "from torch.utils.checkpoint import checkpoint\n"
        "    return checkpoint(lambda t: t.softmax(-1), x, use_reentrant=False)"
    ),
    "optimiser": "torch.optim.AdamW([torch.nn.Parameter(x.clone())]).step()",
    "data": (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "    list(DataLoader(TensorDataset(x), batch_size=2))"
    ),
    "distributions": "torch.distributions.Categorical(logits=x).sample()",
    "convolution": "torch.nn.Conv1d(3, 3, 1)(x), torch.nn.Conv1d(3, 3, 3)(x)",
    "gelu": "torch.nn.GELU()(x), torch.nn.LSTM(4, 4)(x)",
    "a device": "with torch.device('cpu'):\n        torch.ones(2)",
    "prints": "print(x, torch.nn.Linear(2, 2), torch.nn.Parameter(x))",
    "copies": "import copy\n    copy.deepcopy(torch.nn.MultiheadAttention(4, 2))",
    "einsum": "torch.einsum('qk,qk->q', x, x)",
    "a named tuple": "import collections\n    collections.namedtuple('P', 'a b')(1, 2)",
    "a typed tuple": "import typing\n    typing.NamedTuple('P', [('a', int)])(1)",
    "an enum": "import enum\n    enum.Enum('E', 'A B')",
    "a data class": "import dataclasses\n    dataclasses.make_dataclass('D', ['a'])(1)",
    "a log": "import logging\n    logging.warning('x is %s', x)",
    "a traceback": (
        "import traceback\n    try:\n        1 / 0\n"
        "    except ZeroDivisionError:\n        traceback.print_exc()"
    ),
    "a warning": "import warnings\n    warnings.warn('slow')",
    "a mode of its own": (
        "from torch.overrides import TorchFunctionMode\n"
        "    class Mode(TorchFunctionMode):\n"
        "        def __torch_function__(self, f, types, args=(), kwargs=None):\n"
        "            return f(*args, **(kwargs or {}))\n"
        "    with Mode():\n        return torch.softmax(x, -1)"
    ),
    "jaxtyping": "import jaxtyping\n    jaxtyping.Float[torch.Tensor, 'a b']",
}


@pytest.mark.parametrize("body", USEFUL.values(), ids=USEFUL.keys())
def test_what_right_answers_use_works_also_while_operations_are_counted(
    open_seat: OpenSeat, body: str
) -> None:
    student = open_seat(f"def rows(x):\n    {body}\n    return x.softmax(-1)").student()
    torch.testing.assert_close(student.rows(X), X.softmax(-1))
    torch.testing.assert_close(student.rows.observe(X).result, X.softmax(-1))


ASK_FOR_MORE = {"functorch", "jacobian", "gradients", "checkpoint", "optimiser"}


@pytest.mark.parametrize("name", USEFUL)
def test_few_of_them_need_a_process_with_more_of_torch(
    open_seat: OpenSeat, loaded: list[bool], name: str
) -> None:
    body = f"def rows(x):\n    {USEFUL[name]}\n    return x.softmax(-1)"
    student = open_seat(body, whole=False).student()
    torch.testing.assert_close(student.rows(X), X.softmax(-1))
    assert loaded == ([False, True] if name in ASK_FOR_MORE else [False])


@pytest.mark.parametrize("watch", [(), ("softmax",)], ids=["nothing", "softmax"])
def test_where_something_is_forbidden_too(
    open_seat: OpenSeat, loaded: list[bool], watch: tuple[str, ...]
) -> None:
    body = "def rows(x):\n    torch.func.grad(lambda t: t.sum())(x)\n    return x"
    assert torch.equal(open_seat(body, watch, whole=False).student().rows(X), X)
    assert loaded == [False, True]


@pytest.mark.parametrize("module", ["torch.utils.data", "torch.optim", "torch.nn.utils.prune"])
def test_modules_of_torch_that_answers_import_are_there(open_seat: OpenSeat, module: str) -> None:
    body = f"import {module} as m\ndef rows(x):\n    assert m\n    return x.softmax(-1)"
    torch.testing.assert_close(open_seat(body).student().rows(X), X.softmax(-1))


def test_a_printed_tensor_costs_no_operations(open_seat: OpenSeat) -> None:
    def counted(line: str) -> int:
        body = f"def rows(x):\n    {line}\n    return x.softmax(-1)"
        count: int = open_seat(body).student().rows.observe(X).operations.count
        return count

    assert counted("print(x)") == counted("pass")


def test_an_import_of_torch_that_is_not_loaded_takes_nothing_away(open_seat: OpenSeat) -> None:
    body = (
        "import torch.utils.benchmark\nimport torch.contrib\n"
        "def rows(x):\n    return torch.softmax(x, -1)"
    )
    torch.testing.assert_close(open_seat(body).student().rows(X), X.softmax(-1))


def test_half_precision_works_where_torch_did_not_ask_for_the_processor_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    with Warm() as warm:
        body = "import torch\ndef rows(x):\n    return x.half().float().softmax(-1)"
        seat = seats.open_seat(warm.open, body, rows)
        student: Any = seat.student()
        torch.testing.assert_close(student.rows(X), X.half().float().softmax(-1))
        seat.session.close()


# --- threads -------------------------------------------------------------------------------------

IN_THREADS = {
    "thread": (
        "from threading import Thread\ndef rows(x):\n    out = []\n"
        "    def work():\n        out.append(x.softmax(-1))  # here\n"
        "    thread = Thread(target=work)\n    thread.start()\n    thread.join()\n"
        "    return out[0]"
    ),
    "subclass": (
        "from threading import Thread\nclass Work(Thread):\n"
        "    def run(self):\n        self.out = self.x.softmax(-1)  # here\n"
        "def rows(x):\n    thread = Work()\n    thread.x = x\n    thread.start()\n"
        "    thread.join()\n    return thread.out"
    ),
    "raw thread": (
        "import _thread\ndef rows(x):\n    out, done = [], _thread.allocate_lock()\n"
        "    done.acquire()\n    def work():\n        out.append(x.softmax(-1))  # here\n"
        "        done.release()\n    _thread.start_new_thread(work, ())\n    done.acquire()\n"
        "    return out[0]"
    ),
    "pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def work(x):\n    return x.softmax(-1)  # here\n"
        "def rows(x):\n    with ThreadPoolExecutor(1) as pool:\n"
        "        return pool.submit(work, x).result()"
    ),
    "pool made before": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
        "zero = pool.submit(int).result()\n"
        "def work(x):\n    return x.softmax(-1)  # here\n"
        "def rows(x):\n    return pool.submit(work, x + zero).result()"
    ),
}


@pytest.mark.parametrize("body", IN_THREADS.values(), ids=IN_THREADS.keys())
def test_operations_in_a_students_threads_are_seen(open_seat: OpenSeat, body: str) -> None:
    seat = open_seat(body, watch=("softmax",))
    student: Any = seat.student()
    assert student.rows.observe(X).operations.count > 0
    (place,) = {use.place for use in seat.calls.uses("rows")}
    assert place is not None
    assert place.text.endswith("# here")
