//! `--uplink`: a machine and a network beyond it are namespaces of the test. No packet leaves them.

use crate::support::{can_emulate, refused};
use farpath_testing::{Need, skip};
use std::fs;
use std::process::{Command, Stdio};

/// Name server of the machine, on its loopback alone, and web server beyond: what they say are addresses.
const SERVERS: &str = r#"
import socket, sys, threading
BEYOND = {b"\0\1": socket.inet_aton("192.0.2.1"), b"\0\x1c": socket.inet_pton(socket.AF_INET6, "2001:db8::1")}
def answer(query):
    end = query.index(0, 12) + 5
    kind = query[end - 4:end - 2]
    found = BEYOND.get(kind)
    record = b"\xc0\x0c" + kind + b"\0\1\0\0\0\1" + len(found).to_bytes(2, "big") + found if found else b""
    return query[:2] + b"\x81\x80\0\1" + (b"\0\1" if found else b"\0\0") + b"\0\0\0\0" + query[12:end] + record
def datagrams():
    while True:
        query, who = server.recvfrom(4096)
        server.sendto(answer(query), who)
def whole(connection, length):
    got = b""
    while len(got) < length and (more := connection.recv(length - len(got))):
        got += more
    return got
def queries(connection):
    while head := whole(connection, 2):
        reply = answer(whole(connection, int.from_bytes(head, "big")))
        connection.sendall(len(reply).to_bytes(2, "big") + reply)
def echo(listener):
    while True:
        connection, (who, *_) = listener.accept()
        with connection:
            connection.sendall(f"beyond: {who}\n".encode())
if sys.argv[1] == "names":
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    threading.Thread(target=datagrams, daemon=True).start()
    listener = socket.create_server(("127.0.0.1", 53))
    while True:
        queries(listener.accept()[0])
else:
    threading.Thread(target=echo, args=[socket.create_server(("192.0.2.1", 80))], daemon=True).start()
    echo(socket.create_server(("2001:db8::1", 80), family=socket.AF_INET6))
"#;

/// Who is asked and answers.
const CLIENT: &str = r#"
import socket, sys
print(socket.create_connection((sys.argv[1], 80), 20).makefile().readline(), end="")
"#;

/// The machine. Its first process is this script: all ends with it.
const MACHINE: &str = r#"
set -e
mount -t proc proc /proc
ip link set lo up
unshare --net sh -c '
    ip link set lo up
    until ip link show beyond; do sleep 0.02; done
    ip addr add 192.0.2.1/24 dev beyond
    ip link set beyond up
    ip addr add 2001:db8::1/64 dev beyond nodad
    exec python3 servers.py beyond' >beyond.log 2>&1 &
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link add eth0 type veth peer name beyond netns $!
ip addr add 192.0.2.2/24 dev eth0
ip link set eth0 up
ip addr add 2001:db8::2/64 dev eth0 nodad
ip route add default via 192.0.2.1
ip route add default via 2001:db8::1
echo nameserver 127.0.0.1 >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
python3 servers.py names >names.log 2>&1 &
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
for server in 192.0.2.1 2001:db8::1 name.example; do
    until python3 client.py $server >/dev/null 2>&1; do sleep 0.02; done
done
shell() { "$FARPATH" shell --quiet --delay '5 ms' --rate '100 Mbit/s' --uplink -- "$@"; }
"#;

/// What a script prints on a machine with a network beyond it, and what its command said; `None` where there can be none.
fn on_machine(script: &str) -> Option<(String, String)> {
    if !can_emulate() {
        return None;
    }
    let is_there = |program: &str| {
        let mut asked = Command::new(program);
        asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    if !farpath_emu::has_privileges() || !["ip", "unshare", "python3"].into_iter().all(is_there) {
        skip(Need::Root, "a machine of its own takes root, ip, unshare and python3");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("servers.py", SERVERS), ("client.py", CLIENT)] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let output = Command::new("unshare")
        .args([
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            &format!("{MACHINE}{script}"),
        ])
        .current_dir(&folder)
        .env("FARPATH", env!("CARGO_BIN_EXE_farpath"))
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{out}{err}");
    Some((out, err))
}

#[test]
fn the_machines_network_and_its_name_server_are_behind_the_path() {
    // The machine's own addresses are seen beyond, whatever the hosts' are. By TCP, questions go the same way.
    let script = "
        shell python3 client.py 192.0.2.1
        shell python3 client.py 2001:db8::1
        shell python3 client.py name.example
        RES_OPTIONS=use-vc shell python3 client.py name.example
        shell cat /etc/resolv.conf
        cat /etc/resolv.conf";
    let Some((out, err)) = on_machine(script) else { return };
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..2], ["beyond: 192.0.2.2", "beyond: 2001:db8::2"], "{out}{err}");
    assert!(lines[2..4].iter().all(|line| line.starts_with("beyond: ")), "{out}{err}");
    assert_eq!(lines[4..], ["nameserver 10.0.0.2", "nameserver 127.0.0.1"], "{out}{err}");
}

#[test]
fn shells_with_an_uplink_nest_and_stand_side_by_side() {
    let script = r#"
        shell "$FARPATH" shell --quiet --delay '5 ms' --rate '100 Mbit/s' --uplink -- python3 client.py name.example
        shell sh -c 'until [ -e go ]; do sleep 0.02; done; python3 client.py 192.0.2.1' & first=$!
        shell sh -c 'touch go; python3 client.py 192.0.2.1'
        wait $first"#;
    let Some((out, err)) = on_machine(script) else { return };
    assert_eq!(out.lines().filter(|line| line.starts_with("beyond: ")).count(), 3, "{out}{err}");
}

/// Neither where it ends, nor where it is killed.
#[test]
fn nothing_is_left_of_an_uplink() {
    let script = r#"
        shell true
        for moment in 1 2 3 4 5 6 7 8 9 10 11 12; do
            "$FARPATH" shell --quiet --delay '5 ms' --rate '100 Mbit/s' --uplink -- sh -c 'touch up$0; sleep 1000' $moment & shell=$!
            if [ $moment = 12 ]; then until [ -e up12 ]; do sleep 0.02; done; ip -brief link; else sleep 0.0$moment; fi
            kill -9 $shell
            wait $shell || true
        done
        while ip -brief link | grep -q farpath; do sleep 0.02; done
        echo left:
        ip -brief link
        cat /proc/sys/net/ipv4/ip_forward"#;
    let Some((out, err)) = on_machine(script) else { return };
    let (while_up, left) = out.split_once("left:\n").expect("both");
    assert!(while_up.contains("farpath"), "{out}{err}");
    let devices: Vec<&str> = left.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(
        devices.iter().all(|name| *name == "lo" || name.starts_with("eth0") || *name == "1"),
        "{out}{err}"
    );
}

#[test]
fn a_machine_that_forwards_nothing_is_named_and_not_changed() {
    let script = "
        echo 0 >/proc/sys/net/ipv4/ip_forward
        shell true || echo code $?
        cat /proc/sys/net/ipv4/ip_forward";
    let Some((out, err)) = on_machine(script) else { return };
    assert_eq!(out, "code 2\n0\n", "{err}");
    assert!(err.contains("--uplink: ") && err.contains("sysctl -w net.ipv4.ip_forward=1"), "{err}");
}

#[test]
fn what_has_no_uplink_is_refused() {
    refused(
        &["shell", "geo", "--uplink", "--clock", "virtual", "--", "true"],
        &["--uplink", "`--clock real`"],
    );
    refused(&["shell", "geo", "--uplink", "--far", "true", "--", "true"], &["--uplink", "--far"]);
}
