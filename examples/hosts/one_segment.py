#!/usr/bin/env python3
"""A host for Farpath: a TCP of one segment at a time.

It opens or listens, and sends or receives; it repeats what is not acknowledged within 3 s, and has no other rule. See docs/hosts.md.
"""
import socket
import struct
import sys

TIMEOUT = 3_000_000_000  # ns
FIN, SYN, ACK = 1, 2, 16


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pattern(offset: int, length: int) -> bytes:
    places = (place % (32749 * 8) for place in range(offset, offset + length))
    return bytes((place // 8 + 1) * 0x9E3779B97F4A7C15 >> place % 8 * 8 & 0xFF for place in places)


def address(text: str) -> tuple[bytes, int]:
    host, port = text.split(":")
    return socket.inet_aton(host), int(port)


class Host:
    def __init__(self, options: dict[str, str]):
        self.opens, self.sends = options["role"] == "opens", options["task"] == "sends"
        self.bytes, self.mss = int(options["bytes"]), int(options["mtu"]) - 40
        self.local, self.remote = address(options["local"]), address(options["remote"])
        self.sent = self.acked = self.got = 0  # places in the streams; the SYN is place 0
        self.peer, self.again_at, self.out = None, None, []

    def segment(self, flags: int, place: int, data: bytes = b"") -> None:
        ack = (self.peer + self.got) % 2**32 if self.peer is not None else 0
        flags |= ACK if self.peer is not None else 0
        ports = (self.local[1], self.remote[1], place, ack, 5 << 4, flags, 65535)
        tcp = struct.pack("!HHIIBBHHH", *ports, 0, 0) + data
        pseudo = self.local[0] + self.remote[0] + struct.pack("!HH", 6, len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        ip = struct.pack("!BBHIBBH", 0x45, 0, 20 + len(tcp), 0, 64, 6, 0) + self.local[0] + self.remote[0]
        self.out.append(f"packet {(ip[:10] + struct.pack('!H', checksum(ip)) + ip[12:] + tcp).hex()}")

    def send(self, now: int) -> None:
        """The one segment that is not acknowledged, once more or for the first time."""
        end = self.bytes + 1 if self.sends else 1  # place of the FIN
        done = self.sends or self.got > self.bytes
        if self.acked == 0:
            if not self.opens and self.peer is None:
                return
            self.segment(SYN, 0)
            self.sent = 1
        elif self.acked < end:
            length = min(self.mss, end - self.acked)
            self.segment(0, self.acked, pattern(self.acked - 1, length))
            self.sent = self.acked + length
        elif self.acked == end and done:
            self.segment(FIN, end)
            self.sent = end + 1
        else:
            return
        self.again_at = now + TIMEOUT

    def packet(self, now: int, packet: bytes) -> None:
        tcp = packet[(packet[0] & 15) * 4 :]
        seq, ack, offset, flags = struct.unpack("!IIBB", tcp[4:14])
        data = tcp[(offset >> 4) * 4 :]
        if flags & SYN and self.peer is None:
            self.peer, self.got = seq, 1
            new = True
        else:
            new = bool(data or flags & (SYN | FIN))
            if self.peer is not None and (self.peer + self.got) % 2**32 == seq:
                self.got += len(data) + (flags & FIN)
        if flags & ACK and self.acked < ack <= self.sent:
            self.acked, self.again_at = ack, None
            self.out += ["connected"] if ack == 1 else []
        if not self.sends and self.got > 1:
            self.out.append(f"read {min(self.got - 1, self.bytes)}")
        if self.acked == (self.bytes + 2 if self.sends else 2):
            self.out.append("closed")
        before = len(self.out)
        if self.again_at is None:
            self.send(now)
        if new and not any(line.startswith("packet") for line in self.out[before:]):
            self.segment(0, self.sent)


host = None
for line in sys.stdin:
    word, *rest = line.split()
    if word == "farpath-host":
        host = Host(dict(option.split("=") for option in rest[1:]))
        print("name one segment at a time")
    elif word == "packet":
        host.packet(int(rest[0]), bytes.fromhex(rest[1]))
    elif word == "start" or host.again_at is not None and int(rest[0]) >= host.again_at:
        host.send(int(rest[0]))
    print(*host.out, sep="\n", end="\n" if host.out else "")
    host.out.clear()
    print("next", "never" if host.again_at is None else host.again_at, flush=True)
