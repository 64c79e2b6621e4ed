"""A TCP connection as a wire that a test can cut, one way or both, without either end hearing of it.

    wire = Wire(target_port); agent dials 127.0.0.1:wire.port
    wire.cut("to"); wire.cut("from"); wire.heal(); wire.reset()
    Wire(target_port, delay=0.2)  # seconds that each piece is under way

While cut, what was sent waits, as TCP would send it again; nothing is closed, and a new connection is
taken and hears nothing. Needs no privilege. Only the standard library.
"""
import socket
import struct
import threading
import time


class Wire:
    def __init__(self, target_port, delay=0):
        self.delay = delay
        self.target = ("127.0.0.1", target_port)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.open = {"to": threading.Event(), "from": threading.Event()}
        self.lock = threading.Lock()
        self.sockets = set()
        self.closed = False
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *directions):
        for direction in directions:
            self.open[direction].clear()

    def heal(self):
        for gate in self.open.values():
            gate.set()

    def reset(self):
        """Every connection ends with a RST."""
        with self.lock:
            sockets, self.sockets = self.sockets, set()
        for each in sockets:
            try:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RD)  # wakes its reader, which closes it
            except OSError:
                pass

    def close(self):
        self.closed = True
        self.server.close()
        self.heal()
        self.reset()

    def _accept(self):
        while not self.closed:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near):
        for gate in self.open.values():
            gate.wait()  # neither the SYN nor its answer comes through
        try:
            far = socket.create_connection(self.target, 5)
            far.settimeout(None)
        except OSError:
            return near.close()
        with self.lock:
            self.sockets |= {near, far}
        threading.Thread(target=self._carry, args=(far, near, self.open["from"]), daemon=True).start()
        self._carry(near, far, self.open["to"])

    def _carry(self, source, target, gate):
        try:
            while data := source.recv(65536):
                time.sleep(self.delay)
                gate.wait()
                target.sendall(data)
        except OSError:
            pass
        gate.wait()  # a FIN is lost with the rest
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            with self.lock:
                self.sockets.discard(each)
            each.close()
