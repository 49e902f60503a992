"""Which tests may run beside which.

With `-n 2 --dist loadgroup` two processes share the tests. Those that bring up hosts, daemons or messaging
libraries stay in one of them, as there is one port mapper to a host and one daemon of PVM to a user; a
file stays together, so that what it measured once serves all its tests. Tests marked ``alone`` come after,
by themselves: they look at what a quiet machine does.
"""

from __future__ import annotations

import signal

import pytest

HOSTS = "hosts"
ROOMS = {"remote", "stacks", "testbed", "understand", "wire"}
PAGES = {
    "libraries.md",
    "machines.md",
    "stacks.md",
    "testbed.md",
    "together.md",
    "understand.md",
    "add-a-layer.md",
}


def pytest_configure() -> None:
    """Hear interrupts, also where a shell started the tests behind itself, which ignores them.

    The programs that tests interrupt would inherit that, and run on.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def group_of(item: pytest.Item) -> str:
    """Return the name of what stays together."""
    file = item.path
    if file.parent.name in ROOMS:
        return HOSTS
    if file.name == "test_commands.py":
        page = item.name.rpartition("/")[2].rstrip("]")
        return HOSTS if page in PAGES else f"page {page}"
    return f"{file.parent.name}/{file.name}"


@pytest.hookimpl(tryfirst=True)  # xdist reads the names in this very hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
