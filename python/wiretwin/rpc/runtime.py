"""What stubs run on: clients and servers over our machines of RPC, on real sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from wiretwin import _core
from wiretwin.errors import WiretwinError
from wiretwin.rpc.xdr import Packer, Unpacker, XdrError

__all__ = ["Client", "RpcError", "Server", "Service"]

MAPPER_PORT = 111
_MAPPER = (100_000, 2, 3)
_TRANSPORTS = {"tcp": 6, "udp": 17}


class RpcError(WiretwinError):
    """A call that has no results, and why."""

    exit_code = 5


class Client:
    """A client of one version of a program; stubs derive from it.

    Parameters
    ----------
    host
        Where the server is: an address or a name.
    port
        At which port; without one its port mapper is asked.
    transport
        ``tcp`` or ``udp``.
    timeout_s
        How long a call may take in all.
    system
        Who calls, as AUTH_SYS says it: user and group; without it nobody is named.
    """

    PROGRAM: ClassVar[int]
    VERSION: ClassVar[int]

    def __init__(
        self,
        host: str,
        port: int | None = None,
        *,
        transport: str = "tcp",
        timeout_s: float = 25.0,
        system: tuple[int, int] | None = None,
    ) -> None:
        if transport not in _TRANSPORTS:
            raise RpcError(f"transport {transport!r}; allowed: tcp, udp")
        found = self._port(host, transport, timeout_s) if port is None else port
        self._client = _client(host, found, (self.PROGRAM, self.VERSION), transport, timeout_s, system)

    def _port(self, host: str, transport: str, timeout_s: float) -> int:
        program, version, procedure = _MAPPER
        mapper = _client(host, MAPPER_PORT, (program, version), transport, timeout_s, None)
        packer = Packer()
        for word in (self.PROGRAM, self.VERSION, _TRANSPORTS[transport], 0):
            packer.uint32(word)
        try:
            unpacker = Unpacker(mapper.call(procedure, packer.octets))
        except RuntimeError as error:
            raise RpcError(f"port mapper of {host}: {error}") from None
        port = unpacker.uint32()
        if port == 0:
            raise RpcError(
                f"program {self.PROGRAM} version {self.VERSION} is not registered over {transport} at {host}"
            )
        return port

    def call(self, procedure: int, packer: Packer, unpack: Callable[[Unpacker], Any] | None) -> Any:
        """Call a procedure; stubs do.

        Raises
        ------
        RpcError
            There are no results, or none of their type.
        """
        try:
            results = self._client.call(procedure, packer.octets)
        except RuntimeError as error:
            raise RpcError(f"procedure {procedure} of program {self.PROGRAM}: {error}") from None
        unpacker = Unpacker(results)
        try:
            found = unpack(unpacker) if unpack else None
            unpacker.done()
        except (XdrError, RecursionError) as error:
            raise RpcError(f"results of procedure {procedure} of program {self.PROGRAM}: {error}") from None
        return found


def _client(
    host: str,
    port: int,
    program: tuple[int, int],
    transport: str,
    timeout_s: float,
    system: tuple[int, int] | None,
) -> _core.RpcClient:
    try:
        return _core.RpcClient(host, port, *program, transport == "tcp", timeout_s, system)
    except (OSError, ValueError) as error:
        raise RpcError(f"{host}: {error}") from None


class Service:
    """One version of a program; stubs derive from it, and a program derives from them."""

    PROGRAM: ClassVar[int]
    VERSION: ClassVar[int]
    PROCEDURES: ClassVar[dict[int, tuple[str, tuple[Callable[[Unpacker], Any], ...], Any]]]

    def answer(self, procedure: int, octets: bytes) -> bytes | None:
        """Carry out a call: its results; ``None`` where its arguments are garbage."""
        name, unpacks, pack = self.PROCEDURES[procedure]
        unpacker = Unpacker(octets)
        try:
            arguments = [unpack(unpacker) for unpack in unpacks]
            unpacker.done()
        except (XdrError, RecursionError):
            return None
        result = getattr(self, name)(*arguments)
        packer = Packer()
        if pack is not None:
            pack(packer, result)
        return packer.octets


class Server:
    """A server of services, over TCP and UDP at one port; it works while `step` is called."""

    def __init__(self, services: list[Service], host: str = "127.0.0.1", port: int = 0) -> None:
        self._services = {(one.PROGRAM, one.VERSION): one for one in services}
        listed = [(one.PROGRAM, one.VERSION, sorted(one.PROCEDURES)) for one in services]
        try:
            self._server = _core.RpcServer(host, port, listed)
        except (OSError, ValueError) as error:
            raise RpcError(f"{host} port {port}: {error}") from None
        self.port = self._server.port
        """The port, the same over both transports."""

    def step(self, limit_s: float = 0.1) -> None:
        """Carry out what has come, waiting for it no longer than this.

        An error of a procedure goes to the caller as SYSTEM_ERR, and is raised here.
        """
        self._server.step(limit_s, self._react)

    def _react(self, program: int, version: int, procedure: int, octets: bytes) -> bytes | None:
        return self._services[program, version].answer(procedure, octets)
