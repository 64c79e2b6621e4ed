#!/usr/bin/env python3
"""A router of IPv4 packets in user space that delays and loses them, for netns.py.

usage: packet_router.py SEED NAMESPACE=ADDRESS...

Gives each namespace a TUN device `slow0` with that address (/24) and carries packets between them.
Orders come as lines of JSON on standard input, each answered by one line; it leaves at its end.
"""
import fcntl
import heapq
import json
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MOST_WAITING = 20_000  # packets; what comes on top is lost, as on a real wire


def make_tun(namespace, address, number):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"asy{os.getpid()}x{number}"  # for a moment, in the namespace of this process
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for words in (["link", "set", name, "netns", namespace],
                  ["-n", namespace, "link", "set", name, "name", "slow0"],
                  ["-n", namespace, "addr", "add", f"{address}/24", "dev", "slow0"],
                  ["-n", namespace, "link", "set", "slow0", "up"]):
        subprocess.run(["ip", *words], check=True)
    return fd


class Router:
    def __init__(self, seed, hosts):
        self.random = random.Random(seed)
        self.delay = self.loss = 0.0
        self.cut = set()
        self.waiting = []  # (due, order, fd, packet)
        self.order = 0
        self.counts = {"passed": 0, "lost": 0}
        self.fd_of = {address: make_tun(namespace, address, number)
                      for number, (namespace, address) in enumerate(hosts)}
        self.orders = b""

    def take(self, fd):
        while True:
            try:
                packet = os.read(fd, 65536)
            except BlockingIOError:
                return
            if len(packet) < 20 or packet[0] >> 4 != 4:
                continue
            source, target = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
            lost = self.random.random() < self.loss or (source, target) in self.cut
            if target not in self.fd_of or lost or len(self.waiting) >= MOST_WAITING:
                self.counts["lost"] += 1
                continue
            self.order += 1
            heapq.heappush(self.waiting, (time.monotonic() + self.delay, self.order,
                                          self.fd_of[target], packet))

    def deliver(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, fd, packet = heapq.heappop(self.waiting)
            try:
                os.write(fd, packet)
                self.counts["passed"] += 1
            except OSError:
                self.counts["lost"] += 1

    def obey(self):
        got = os.read(0, 65536)
        self.orders += got
        while b"\n" in self.orders:
            line, self.orders = self.orders.split(b"\n", 1)
            order = json.loads(line)
            self.delay = order.get("delay", self.delay)
            self.loss = order.get("loss", self.loss)
            if "cut" in order:
                (self.cut.add if order["is_cut"] else self.cut.discard)(tuple(order["cut"]))
            print(json.dumps(self.counts), flush=True)
        return bool(got)

    def run(self):
        with selectors.DefaultSelector() as selector:
            for fd in [0, *self.fd_of.values()]:
                selector.register(fd, selectors.EVENT_READ)
            print("ready", flush=True)
            while True:
                wait = max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None
                for key, _ in selector.select(wait):
                    if key.fd != 0:
                        self.take(key.fd)
                    elif not self.obey():
                        return
                self.deliver()


if __name__ == "__main__":
    Router(int(sys.argv[1]), [word.split("=") for word in sys.argv[2:]]).run()
