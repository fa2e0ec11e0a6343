"""A TCP port that leads to one of several servers and can hold back what is sent through it, like a slow network."""

from __future__ import annotations

import socket
from contextlib import suppress
from itertools import count
from threading import Event, Lock, Thread
from typing import Final

Place = tuple[str, int]

_CHUNK: Final = 65536
_TIMEOUT_S: Final = 5.0


class Relay:
    """Each new connection leads to the next server that can be reached."""

    def __init__(self, host: str) -> None:
        self._listening = socket.create_server((host, 0))
        self.address: Place = self._listening.getsockname()[:2]
        self._servers: list[Place] = []
        self._open: set[tuple[socket.socket, socket.socket]] = set()
        self._turns = count()
        self._lock = Lock()
        self._flowing = Event()
        self._flowing.set()
        Thread(target=self._accept, daemon=True, name="relay").start()

    def lead_to(self, server: Place) -> None:
        with self._lock:
            self._servers.append(server)

    def forget(self, server: Place) -> None:
        """Stops leading new connections to a server; open ones continue."""
        with self._lock:
            if server in self._servers:
                self._servers.remove(server)

    def hold(self) -> None:
        """Stops all traffic in both directions; nothing is lost."""
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    def cut(self) -> int:
        """Closes all open connections with what is on its way; returns how many. New ones are accepted."""
        with self._lock:
            for end in (end for pair in self._open for end in pair):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            return len(self._open)

    def close(self) -> None:
        self.release()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                Thread(target=self._serve, args=(client,), daemon=True, name="relay connection").start()

    def _serve(self, client: socket.socket) -> None:
        server = self._reach()
        if server is None:
            client.close()
            return
        with self._lock:
            self._open.add((client, server))
        back = Thread(target=self._answer, args=(server, client), daemon=True, name="relay answers")
        back.start()
        self._pass_on(client, server)
        back.join()
        with self._lock:
            self._open.discard((client, server))
        server.close()

    def _reach(self) -> socket.socket | None:
        with self._lock:
            servers = [*self._servers]
        for _ in servers:
            with suppress(OSError):
                server = socket.create_connection(servers[next(self._turns) % len(servers)], timeout=_TIMEOUT_S)
                server.settimeout(None)
                return server
        return None

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        self._pass_on(server, client)
        client.close()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        """Passes data on. After a client has closed, what it has sent still arrives."""
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flowing.wait()
                sink.sendall(data)
