"""The engine's structure in numbers: ``python -m tests.tools.structure [FOLDER]``.

It counts the modules of ``grader/`` and the imports between them, those inside functions too, but
not those under TYPE_CHECKING. A *room* is a folder of the engine, or a module at its root.
``--run`` also grades a small submission. It counts the modules that the submission runs through,
the switches between them (calls from one module to another), and the engine's frames above
`Jail.ask`. ``--rooms`` lists the rooms with their statements and imports.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]

# The rooms from the ground up: a room imports only rooms that come before it.
ROOMS = (
    *("records", "wire"),
    *("course", "guest", "sandbox"),
    *("mistakes", "unsandboxed", "proxies", "feedback", "intake"),
    *("testing", "grades", "grading", "questions"),
    *("run", "report", "inspection", "pytest_plugin"),
    *("student", "author", "release"),
    *("lms", "mine"),
    *("playing", "cli", "__main__"),
)  # fmt: skip

Graph = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Module:
    """One file of the engine."""

    name: str  # without the package's: "wire.frames"
    package: bool
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        """The folder or root module that it belongs to."""
        return self.name.partition(".")[0]

    @property
    def lines(self) -> int:
        """Lines of text, blank lines included."""
        return len(self.text.splitlines())

    @property
    def statements(self) -> int:
        """Nodes of the syntax tree that are statements."""
        return sum(isinstance(node, ast.stmt) for node in ast.walk(self.tree))

    @property
    def public(self) -> frozenset[str]:
        """Functions, classes and types defined at its top level, without constants."""
        names: set[str] = set()
        for node in self.tree.body:
            match node:
                case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                    names.add(node.name)
                case ast.Assign():
                    names.update(t.id for t in node.targets if isinstance(t, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.add(name)
        return frozenset(n for n in names if not n.startswith("_") and not n.isupper())

    def functions(self) -> Iterator[tuple[str, int]]:
        """Each function, with its lines from ``def`` on, decorators left out."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield node.name, node.end_lineno - node.lineno + 1


def modules_of(folder: Path) -> dict[str, Module]:
    """All modules of the package in `folder`, by name; templates and data do not count."""
    found: dict[str, Module] = {}
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder)
        if "templates" in place.parts or "bundle" in place.parts:
            continue
        package = path.name == "__init__.py"
        name = ".".join(place.parent.parts if package else place.with_suffix("").parts)
        name = name or "__init__"
        found[name] = Module(name, package, path.read_text("utf-8"))
    return found


def imports_of(module: Module, modules: Mapping[str, Module]) -> frozenset[str]:
    """The modules of the engine that this module imports, inside functions too."""
    found: set[str] = set()
    for node in _run(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= _named(alias.name, modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                found |= _named(f"{node.module}.{alias.name}", modules) or _named(
                    node.module, modules
                )
    return frozenset(found - {module.name})


def foreign_imports_of(text: str) -> frozenset[str]:
    """The packages that a file imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
    return frozenset(name.partition(".")[0] for name in found)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run: not those under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (found for other in child.orelse for found in (other, *_run(other)))
        else:
            yield child
            yield from _run(child)


def _named(dotted: str, modules: Mapping[str, Module]) -> set[str]:
    first, _, rest = dotted.partition(".")
    if first != "grader":
        return set()
    name = rest or "__init__"
    return {name} if name in modules else set()


def between_rooms(modules: Mapping[str, Module]) -> Graph:
    """Which rooms each room imports from; the package's own ``__init__`` is no room."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        rooms[module.room] |= {
            modules[name].room for name in imports_of(module, modules)
        } - {module.room, "__init__"}  # fmt: skip
    return {room: frozenset(needed) for room, needed in rooms.items()}


def tangles(graph: Graph) -> list[frozenset[str]]:
    """Groups of nodes that reach one another (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[frozenset[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            cut = stack.index(node)
            group = frozenset(stack[cut:])
            del stack[cut:]
            if len(group) > 1:
                groups.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return groups


def floors(graph: Graph) -> dict[str, int]:
    """The number of rooms on the longest way down from each room, itself included.

    Rooms of a tangle are on the same floor, and each counts.
    """
    tangle_of = {node: group for group in tangles(graph) for node in group}

    def group(node: str) -> frozenset[str]:
        return tangle_of.get(node, frozenset({node}))

    condensed = {
        group(node): {group(other) for one in group(node) for other in graph.get(one, ())}
        - {group(node)}
        for node in graph
    }
    height: dict[frozenset[str], int] = {}
    for one in TopologicalSorter(condensed).static_order():
        height[one] = len(one) + max((height[other] for other in condensed.get(one, ())), default=0)
    return {node: height[group(node)] for node in graph}


def arrows_back_up(graph: Graph, order: Iterable[str]) -> list[tuple[str, str]]:
    """Imports between rooms that point up in `order`, which runs from the ground to the top."""
    place = {room: number for number, room in enumerate(order)}
    return sorted(
        (room, other) for room, others in graph.items() for other in others
        if place[other] > place[room]
    )  # fmt: skip


def twice_used(modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Public names that two modules or more define."""
    where: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        for name in module.public:
            where[name].append(module.name)
    return {name: places for name, places in sorted(where.items()) if len(places) > 1}


def table() -> str:
    """The table of the engine's README. Sizes are rounded, so that it changes rarely."""
    found = numbers(ROOT / "grader")
    rounded = {"lines", "statements"}
    rows = ["| what | today |", "|---|---|"]
    for name, value in found.items():
        shown = f"about {round(int(str(value)), -3):,}" if name in rounded else value
        rows.append(f"| {name} | {shown} |")
    return "\n".join(rows) + "\n"


def numbers(folder: Path) -> dict[str, object]:
    """The rows of the table."""
    modules = modules_of(folder)
    graph = between_rooms(modules)
    whole = {name: imports_of(module, modules) for name, module in modules.items()}
    every = [(size, f"{m.name}.{name}") for m in modules.values() for name, size in m.functions()]
    long_modules = sorted((m.lines, m.name) for m in modules.values())
    return {
        "modules": len(modules),
        "lines": sum(module.lines for module in modules.values()),
        "statements": sum(module.statements for module in modules.values()),
        "rooms": len(set(graph) - {"__init__"}),
        "floors": max(floors(graph).values()),
        "rooms in cycles": sum(map(len, tangles(graph))),
        "modules in cycles": sum(map(len, tangles(whole))),
        "imports inside functions": _inside(modules),
        "public names used twice": len(twice_used(modules)),
        "`# fmt: skip`": sum(module.text.count("# fmt: skip") for module in modules.values()),
        "lines of the longest module": f"{long_modules[-1][0]} ({long_modules[-1][1]})",
        "lines of the longest function": "{} ({})".format(*max(every)),
    }


def _inside(modules: Mapping[str, Module]) -> int:
    found = {
        node
        for module in modules.values()
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and "grader" in ast.unparse(node)
    }
    return len(found)  # each once, also where functions are nested


@dataclass(frozen=True)
class Walk:
    """How one submission runs through the engine's modules, in the trusted process."""

    modules: int
    switches: int  # calls whose caller is in another module
    depth: int  # the most frames of the engine above `Jail.ask`


def walked(sample: Path, exercise: str) -> Walk:
    """Call ``grader grade`` for one exercise of a submission twice, and count the second time."""
    from grader.cli.app import app

    home = str(ROOT / "grader")
    met: set[str] = set()
    switches = depth = 0

    def is_ours(file: str) -> bool:
        return file.startswith(home) and file.endswith(".py")  # a page's template is no module

    def see(frame: FrameType, event: str, _: object) -> None:
        nonlocal switches, depth
        here = frame.f_code.co_filename
        if event != "call" or not is_ours(here):
            return
        met.add(here)
        above = frame.f_back.f_code.co_filename if frame.f_back is not None else here
        switches += above != here and is_ours(above)
        if frame.f_code.co_qualname == "Jail.ask":
            depth = max(depth, sum(is_ours(f.f_code.co_filename) for f in _above(frame)))

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        for attempt in ("warm-up", "counted"):
            call = ["grade", str(sample), "--out", f"{folder}/{attempt}", "--only", exercise]
            sys.setprofile(see if attempt == "counted" else None)
            try:
                app([*call, "--jobs", "1"], standalone_mode=False)
            finally:
                sys.setprofile(None)
    return Walk(len(met), switches, depth)


def _above(frame: FrameType) -> Iterator[FrameType]:
    while (caller := frame.f_back) is not None:
        frame = caller
        yield frame


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "grader")
    parser.add_argument(
        "--rooms", action="store_true", help="list rooms with floors and statements, and cycles"
    )
    parser.add_argument("--run", type=Path, metavar="SUBMISSION", help="grade this, and count")
    parser.add_argument("--only", default="causal_mask", help="its exercise")
    options = parser.parse_args()
    for name, value in numbers(options.folder).items():
        print(f"| {name} | {value} |")
    if options.run:
        walk = walked(options.run, options.only)
        print(f"| modules that a small submission runs through | {walk.modules} |")
        print(f"| switches between them | {walk.switches} |")
        print(f"| frames above `Jail.ask` | {walk.depth} |")
    if options.rooms:
        modules = modules_of(options.folder)
        graph = between_rooms(modules)
        height = floors(graph)
        sizes: Counter[str] = Counter()
        for module in modules.values():
            sizes[module.room] += module.statements
        print("\nfloor, room, statements, imports")
        for room in sorted(graph, key=lambda room: (height[room], room)):
            print(height[room], room, sizes[room], "->", *sorted(graph[room]))
        for group in tangles(graph):
            print("cycle:", *sorted(group))


if __name__ == "__main__":
    main()
