"""Type the commands that `farpath explain` prints into two namespaces, and time a transfer before and after.

`python python/benches/typed_advice.py`, as root on Linux, prints the table of docs/explain.md: of each remedy what was promised
(simulated), and what a kernel's TCP took with the printed lines typed in at both ends. The namespaces are those of `farpath shell`,
whose hosts have the kernel's defaults; what `explain` was told of the hosts is typed in first. With `--clock virtual` the kernel is one
that `farpath kernel build` has made, which a busy machine does not disturb.
"""

import argparse
import json
import statistics
import subprocess
import sys

SENDER = r"""
import socket, sys, time
size = int(sys.argv[1])
print("began", time.monotonic(), flush=True)
s = socket.socket()
if sys.argv[2] != "default":
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2].encode())
s.connect(("far", 7000))
block = bytes(65536)
while size:
    size -= s.send(block[:min(size, len(block))])
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""
RECEIVER = r"""
import socket, time
l = socket.create_server(("0.0.0.0", 7000))
c, _ = l.accept()
read = 0
while part := c.recv(1 << 20):
    read, at = read + len(part), time.monotonic()
print("read", read, at, flush=True)
c.close()
"""

# Name, path, size, what else `explain` is told, what that is in the kernel (near, far), remedies, seeds.
PATHS = [
    ("a satellite, a window of 64 kB", ("280 ms", "10 Mbit/s", "0 %"), 3_000_000, ["--window", "65535 B"],
     ([], ['sysctl -w net.ipv4.tcp_rmem="4096 131070 131070"']), ["receive-window", "ack-every-segment", "all"], 1),
    ("1 % of loss", ("30 ms", "20 Mbit/s", "1 %"), 3_000_000, [], ([], []), ["bbr", "ack-every-segment"], 5),
    ("a web page", ("50 ms", "100 Mbit/s", "0 %"), 300_000, [], ([], []), ["initial-window", "ack-every-segment"], 1),
    ("a small send buffer", ("40 ms", "50 Mbit/s", "0 %"), 5_000_000, ["--set", "sender.send.buffer=128 kB"],
     (['sysctl -w net.ipv4.tcp_wmem="4096 16384 128000"'], []), ["send-buffer"], 1),
    ("0.3 % of loss, no SACK", ("40 ms", "20 Mbit/s", "0.3 %"), 5_000_000,
     ["--set", "sender.recovery.sack=false", "--set", "receiver.recovery.sack=false",
      "--set", "sender.recovery.rack=false", "--set", "sender.recovery.tail_loss_probe=false"],
     (["sysctl -w net.ipv4.tcp_sack=0", "sysctl -w net.ipv4.tcp_recovery=0", "sysctl -w net.ipv4.tcp_early_retrans=0"],
      ["sysctl -w net.ipv4.tcp_sack=0"]), ["sack", "rack-tlp"], 5),
]
# These take as long as they say where the clock is real.
FAR_PATHS = [
    ("a round trip of 20 minutes", ("10 min", "2 Mbit/s", "0 %"), 200_000, [], ([], []), ["typed"], 1),
]


def explain(farpath, path, size, told):
    delay, rate, loss = path
    command = [farpath, "explain", "--delay", delay, "--rate", rate, "--loss", loss, "--size", f"{size} B", "--json",
               # As the programs here do.
               "--set", "transfer.opener=sender", *told]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def typed(commands, end):
    """The lines of an end, as typed in there: its own device, the other host, no gateway between."""
    peer = "far" if end == "sender" else "near"
    lines = [line for host in commands if host["end"] == end for setting in host["settings"] for line in setting["root"]]
    address = {"far": "10.0.0.2", "near": "10.0.0.1"}[peer]
    # A kernel with the module built in has nothing to load.
    lines = [line for line in lines if not line.startswith("modprobe")]
    return [line.replace("via GATEWAY ", "").replace("PEER", address).replace("DEVICE", "$DEVICE") for line in lines]


def transfer(farpath, clock, path, size, near, far, seed):
    """Seconds from the SYN until the kernel has given the last byte, with these lines typed in first; infinite where it never does."""
    device = "DEVICE=$(ip -o -4 addr show | awk '$2 != \"lo\" {print $2; exit}')"
    # A namespace begins with the machine's controller and `explain` with linux-6's, which a sysctl of a namespace may not choose where the
    # machine restricts it: the program does.
    control = "default" if any("tcp_congestion_control" in line for line in near) else "cubic"
    near_line = "\n".join(["set -e", device, *(f"{line} >/dev/null" for line in near), f"exec python3 -c '{SENDER}' {size} {control}"])
    far_line = "\n".join(["set -e", device, *(f"{line} >/dev/null" for line in far), f"exec python3 -c '{RECEIVER}'"])
    delay, rate, loss = path
    command = [farpath, "shell", "--delay", delay, "--rate", rate, "--loss", loss, "--seed", str(seed), "-q",
               "--clock", clock, "--far", far_line, "--far-port", "7000", "--", "sh", "-c", near_line]
    done = subprocess.run(command, capture_output=True, text=True)
    # What the far host's program prints is on stderr.
    words = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    began = [float(line[1]) for line in words if line[:1] == ["began"]]
    read = [float(line[2]) for line in words if line[:2] == ["read", str(size)]]
    if read:
        # Both hosts are of one machine, and have its clock.
        return read[0] - began[0]
    if "TimeoutError" not in done.stderr:
        sys.exit(f"typed_advice: {done.stdout}{done.stderr}")
    return float("inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="some of the paths, by name")
    parser.add_argument("--farpath", default="farpath", help="the command (default: %(default)s)")
    parser.add_argument("--clock", choices=["real", "virtual"], default="real")
    asked = parser.parse_args()
    farpath, clock = asked.farpath, asked.clock
    print("| path | remedy | before: simulated, kernel | promised | got | lines typed in |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for name, path, size, told, (near, far), wanted, seeds in PATHS + (FAR_PATHS if clock == "virtual" else []):
        if asked.paths and name not in asked.paths:
            continue
        explanation = explain(farpath, path, size, told)
        simulated = (explanation["observed"]["transfer_time_s"] or {}).get("mean", float("inf"))
        mean = lambda *hosts: statistics.mean(transfer(farpath, clock, path, size, *hosts, seed) for seed in range(1, seeds + 1))
        before = mean(near, far)
        remedies = [*explanation["remedies"], *filter(None, [explanation[name] for name in ("all", "hosts", "typed")])]
        for prefix in wanted:
            for remedy in (remedy for remedy in remedies if remedy["id"].startswith(prefix)):
                lines = [typed(remedy["commands"], end) for end in ("sender", "receiver")]
                if not any(lines):
                    continue
                got = mean(near + lines[0], far + lines[1])
                promised = remedy["simulated"]["transfer_time_s"]["mean"]
                what = "; ".join(f"`{line}`" for line in dict.fromkeys(sum(lines, [])))
                figures = [f"{time:.4g}" if time < float("inf") else "–" for time in (simulated, before, promised, got)]
                print(f"| {name} | `{remedy['id']}` | {figures[0]}, {figures[1]} | {figures[2]} | {figures[3]} | {what} |",
                      flush=True)


if __name__ == "__main__":
    main()
