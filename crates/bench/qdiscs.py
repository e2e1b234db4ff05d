"""Compare the managed queues of `link` with the qdiscs of a Linux kernel, packet by packet, in virtual time.

The same programs send the same datagrams at the same times through either: a bare path whose first host has TBF at
the link's rate with the qdisc below it, and a path with a link of that rate and that `aqm`. What arrives, and with
which mark, is compared. `make qdiscs` runs it; the table is in docs/queues.md.

TBF takes a packet from the qdisc below it when the one before it has left, and lets it go when its tokens are there:
as the link does, whose packet leaves when its last bit has been sent. Only what comes first finds tokens there
already: two packets that are not counted, of the length of the bucket together. With a bucket of just one packet TBF
would lose what its timer is late by, 0.3 us a packet.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

RATE = 11_700_000
"""Bit/s: a packet of 1500 B takes 1.0256 ms, which no time of an algorithm is a multiple of."""

SENDER = """
import ctypes, socket, struct, subprocess, sys, time
count, gap_ns, flows, tos, qdisc = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
device = next(name for _, name in socket.if_nameindex() if name != "lo")
if qdisc:
    def tc(text):
        subprocess.run(["tc"] + text.split(), check=True)
    tc(f"qdisc replace dev {device} root handle 1: tbf rate %dbit burst 1528 limit 1000000000")
    tc(f"qdisc replace dev {device} parent 1:1 handle 2: {qdisc}")
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)
sockets = []
for flow in range(flows):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 28)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    s.bind(("10.0.0.1", 5000 + flow))
    sockets.append(s)
time.sleep(1)
start = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000_000 * 1_000_000_000 + 2_000_000_000
for number in range(count):
    due = start + number * gap_ns
    while (left := due - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) > 0:
        time.sleep(left / 1e9)
    if number == 0 and qdisc:
        sockets[0].sendto(struct.pack("!I", 0xffffffff) + bytes(1468), ("10.0.0.2", 7000))
        sockets[0].sendto(b"", ("10.0.0.2", 7000))
    sockets[number %% flows].sendto(struct.pack("!I", number) + bytes(1468), ("10.0.0.2", 7000))
time.sleep(count * gap_ns / 1e9 + 5)
if qdisc:
    # TBF peeks at an empty RED and never takes from it, so that RED does not know that it is idle: its mean stays, and the end would be dropped.
    tc(f"qdisc del dev {device} root")
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0)
s.sendto(b"end", ("10.0.0.2", 7000))
time.sleep(2)
""" % RATE

RECEIVER = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 28)
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.bind(("10.0.0.2", 7000))
arrived, marked = [], []
while True:
    data, ancillary, _, _ = s.recvmsg(2000, 64)
    if data == b"end":
        break
    if data[:4] in (b"", b"\\xff" * 4):
        continue
    number = struct.unpack("!I", data[:4])[0]
    arrived.append(number)
    if ancillary[0][2][0] & 3 == 3:
        marked.append(number)
print("ARRIVED", arrived, flush=True)
print("MARKED", marked, flush=True)
"""

# The packet that TBF has taken, and not yet sent, counts with those that wait below it: limits of packets are one more, and
# RED's thresholds 1500 B. A kernel's queue holds no more than the sender's socket, some 180 packets: limits are below that.
# Name, of the qdisc, of `aqm`, packets, gap in us, flows, ECT(0).
CASES = [
    ("CoDel, load 1.05", "codel limit 1000000", '{ kind = "codel" }', 6000, 977, 1, False),
    ("CoDel, load 2", "codel limit 1000000", '{ kind = "codel" }', 6000, 513, 1, False),
    ("CoDel, ECN, load 1.05", "codel limit 1000000 ecn", '{ kind = "codel", ecn = true }', 6000, 977, 1, True),
    ("CoDel, full queue", "codel limit 51", '{ kind = "codel" }', 6000, 513, 1, False),
    ("FQ-CoDel, load 1.05", "fq_codel limit 10240", '{ kind = "fq-codel" }', 6000, 977, 1, False),
    ("FQ-CoDel, 3 flows, ECN", "fq_codel limit 10240", '{ kind = "fq-codel" }', 6000, 823, 3, True),
    ("FQ-CoDel, 3 flows, full", "fq_codel limit 101", '{ kind = "fq-codel" }', 6000, 513, 3, False),
    ("PIE, load 1.25", "pie limit 10000", '{ kind = "pie" }', 12000, 823, 1, False),
    ("RED, load 1.25", "red limit 151500 min 31500 max 91500 avpkt 1000 burst 55 probability 0.02 bandwidth 10mbit",
     '{ kind = "red", min = "30 kB", max = "90 kB", burst = 55 }', 12000, 823, 1, False),
    ("RED, ECN, load 1.25", "red limit 151500 min 31500 max 91500 avpkt 1000 burst 55 probability 0.02 bandwidth 10mbit ecn",
     '{ kind = "red", min = "30 kB", max = "90 kB", burst = 55, ecn = true }', 12000, 823, 1, True),
    ("FQ-PIE, load 1.25", "fq_pie limit 10240", '{ kind = "fq-pie" }', 12000, 823, 1, False),
]
LIMITS = {"RED, load 1.25": "150 kB", "RED, ECN, load 1.25": "150 kB", "CoDel, full queue": "50 packets", "FQ-CoDel, 3 flows, full": "100 packets"}


def run(farpath, path, case, qdisc):
    """What arrives, and what of it has a mark."""
    _, _, _, count, gap_us, flows, ect = case
    with tempfile.TemporaryDirectory() as folder:
        for name, text in [("send.py", SENDER), ("receive.py", RECEIVER), ("path.toml", path)]:
            (Path(folder) / name).write_text(text)
        near = ["python3", f"{folder}/send.py", count, gap_us * 1000, flows, 2 if ect else 0, qdisc]
        command = [farpath, "shell", f"{folder}/path.toml", "--clock", "virtual", "--far", f"exec python3 {folder}/receive.py"]
        ran = subprocess.run([*command, "--", *map(str, near)], capture_output=True, text=True)
    found = dict(line.split(" ", 1) for line in ran.stderr.splitlines() if line.startswith(("ARRIVED", "MARKED")))
    if ran.returncode != 0 or len(found) != 2:
        sys.exit(f"{' '.join(command)}: {ran.stderr}")
    return json.loads(found["ARRIVED"]), json.loads(found["MARKED"])


def described(kernel, ours):
    """How far two lists of packets agree."""
    kernel, ours = set(kernel), set(ours)
    return f"{len(kernel)} | {len(ours)} | {len(kernel & ours)}"


def main():
    farpath, *wanted = sys.argv[1:]
    link = '[[path]]\nelement = "link"\nrate = "%d bit/s"\n' % RATE
    rest = '[[path]]\nelement = "delay"\ndelay = "1 ms"\n[transfer]\nsize = "1 B"\n'
    bare = f'title = "bare"\n{rest}'
    print("| case | drops of Linux | of `link` | in common | marks of Linux | of `link` | in common |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in CASES:
        name, qdisc, aqm, count, *_ = case
        if wanted and not any(text in name for text in wanted):
            continue
        queue = f'queue = "{LIMITS.get(name, "1000000 packets")}"\n'
        path = f'title = "managed"\n{link}{queue}aqm = {{ forward = {aqm}, reverse = "drop-tail" }}\n{rest}'
        (arrived, marked), (ours, ours_marked) = run(farpath, bare, case, qdisc), run(farpath, path, case, "")
        everything = set(range(count))
        drops = described(everything - set(arrived), everything - set(ours))
        print(f"| {name} | {drops} | {described(marked, ours_marked)} |", flush=True)


if __name__ == "__main__":
    main()
