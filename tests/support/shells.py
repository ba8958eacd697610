"""IPython in the process of the tests, for cells that tests run."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture(scope="module")
def one_shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        config = Config({"HistoryManager": {"enabled": False}})
        # In a module of its own: `__main__` is pytest's.
        yield InteractiveShell.instance(config=config, user_module=ModuleType("cells"))
        InteractiveShell.clear_instance()


@pytest.fixture
def shell(one_shell: InteractiveShell) -> InteractiveShell:
    """IPython, in which no cell has run."""
    one_shell.reset()
    return one_shell
