//! What an operator types in to make a change: for each end the commands that take root, what a program can do by itself,
//! how to see that it is in force, and how to undo it.

use farpath_experiment::{Override, Scenario, Stack};
use farpath_tcp::config::{Config, CongestionControlKind};
use serde::Serialize;

/// Which system a stack is of, as far as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostSystem {
    /// Linux, and every stack that is no system's: Linux plays it.
    Linux,
    /// FreeBSD.
    FreeBsd,
    /// Windows.
    Windows,
}

impl HostSystem {
    fn from_stack(stack: &Stack) -> HostSystem {
        match stack.name.as_str() {
            name if name.starts_with("windows") => HostSystem::Windows,
            name if name.starts_with("freebsd") || name.starts_with("bsd") => HostSystem::FreeBsd,
            _ => HostSystem::Linux,
        }
    }

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            HostSystem::Linux => "Linux",
            HostSystem::FreeBsd => "FreeBSD",
            HostSystem::Windows => "Windows",
        }
    }
}

/// What is typed in at one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostCommands {
    /// `sender`, `receiver`, `program`: whichever opens the connections, or `path`: the machine at whose device the slowest link begins.
    pub end: &'static str,
    /// Whose commands they are.
    pub system: HostSystem,
    /// One for each change.
    pub settings: Vec<Setting>,
}

/// One change of a host. Without commands where it is as it should be already.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Setting {
    /// The parameter that it changes.
    pub key: String,
    /// Commands that take root.
    pub root: Vec<String>,
    /// Sysctls among them, by name and value: what a file of `sysctl.d` takes.
    pub sysctls: Vec<(String, String)>,
    /// What a program does for its own connections alone, without root.
    pub program: Vec<String>,
    /// What shows that it is in force.
    pub check: String,
    /// Commands that undo it.
    pub undo: Vec<String>,
    /// What else it changes on that host.
    pub affects: String,
}

impl Setting {
    /// Whether there is anything to type in.
    pub fn is_needed(&self) -> bool {
        !self.root.is_empty() || !self.program.is_empty()
    }

    /// A sysctl, and its value before.
    fn sysctl(mut self, name: &str, value: impl ToString, before: impl ToString) -> Setting {
        let (value, before) = (value.to_string(), before.to_string());
        if value == before {
            return self;
        }
        self.root.push(assignment(name, &value));
        self.undo.push(assignment(name, &before));
        self.sysctls.push((name.to_owned(), value));
        if self.check.is_empty() {
            self.check = format!("sysctl {name}");
        }
        if self.affects.is_empty() {
            "every connection that this host opens or accepts afterwards".clone_into(&mut self.affects);
        }
        self
    }

    /// A metric of the route to the peer.
    fn route(mut self, metric: &str) -> Setting {
        self.root.push(format!("{ROUTE} {metric}"));
        self.undo.push("ip route del PEER".to_owned());
        "ip route get PEER; ip route show PEER".clone_into(&mut self.check);
        "every new connection to PEER, and no other; what is undone is the route to PEER alone (where there was one before, type in that line again; leave out \
         `via GATEWAY` where PEER is on the same network)"
            .clone_into(&mut self.affects);
        self
    }

    fn program(mut self, lines: &[String]) -> Setting {
        self.program.extend_from_slice(lines);
        self
    }

    fn check(mut self, check: &str) -> Setting {
        check.clone_into(&mut self.check);
        self
    }

    fn affects(mut self, affects: &str) -> Setting {
        affects.clone_into(&mut self.affects);
        self
    }

    fn root(mut self, line: impl Into<String>, undo: impl Into<String>) -> Setting {
        self.root.push(line.into());
        self.undo.push(undo.into());
        self
    }
}

/// How a line begins that gives the route to the peer a metric.
const ROUTE: &str = "ip route replace PEER via GATEWAY dev DEVICE";

/// `ip route replace` takes away what it does not name: several metrics of a route stand on one line, with the first of them.
fn one_route(settings: Vec<Setting>) -> Vec<Setting> {
    let mut all: Vec<Setting> = Vec::new();
    for setting in settings {
        let metric = setting.root.iter().find_map(|line| line.strip_prefix(ROUTE));
        let is_route = |known: &&mut Setting| known.root.iter().any(|line| line.starts_with(ROUTE));
        match (metric, all.iter_mut().find(is_route)) {
            (Some(metric), Some(known)) => {
                let line = known.root.iter_mut().find(|line| line.starts_with(ROUTE)).expect("it was found");
                line.push_str(metric);
                known.key = format!("{}, {}", known.key, setting.key);
                known.program.extend(setting.program);
            }
            _ => all.push(setting),
        }
    }
    all
}

fn assignment(name: &str, value: &str) -> String {
    if value.contains(' ') {
        format!("sysctl -w {name}=\"{value}\"")
    } else {
        format!("sysctl -w {name}={value}")
    }
}

/// What to type in for these changes.
pub(crate) fn commands_for(scenario: &Scenario, changes: &[Override]) -> Vec<HostCommands> {
    let ends = [("sender", &scenario.sender), ("receiver", &scenario.receiver)];
    let mut all: Vec<HostCommands> = Vec::new();
    for (end, stack) in ends {
        let system = HostSystem::from_stack(stack);
        let own = changes
            .iter()
            .filter_map(|change| Some((change, change.key.strip_prefix(end)?.strip_prefix('.')?)));
        let setting = |(change, key): (&Override, &str)| {
            let value = Value::from_change(change);
            let setting = match system {
                HostSystem::Linux => linux(key, &value, &stack.config, end == "sender"),
                HostSystem::FreeBsd => freebsd(key, &value, &stack.config),
                HostSystem::Windows if stack.name.contains("2003") => windows_registry(key, &value),
                HostSystem::Windows => windows(key, &value, &stack.config),
            };
            setting.map(|setting| Setting { key: change.key.clone(), ..setting })
        };
        let settings = one_route(own.filter_map(setting).collect());
        if !settings.is_empty() {
            all.push(HostCommands { end, system, settings });
        }
    }
    let programs: Vec<Setting> = changes.iter().filter_map(of_program).collect();
    if !programs.is_empty() {
        all.push(HostCommands { end: "program", system: HostSystem::Linux, settings: programs });
    }
    let path: Vec<Setting> = changes.iter().filter_map(of_path).collect();
    if !path.is_empty() {
        all.push(HostCommands { end: "path", system: HostSystem::Linux, settings: path });
    }
    all
}

/// The value of a change, as text and as what it is.
struct Value {
    text: String,
}

impl Value {
    fn from_change(change: &Override) -> Value {
        let text = change.text().split_once('=').map_or("", |(_, value)| value);
        Value { text: text.trim().trim_matches('"').to_owned() }
    }

    fn bytes(&self) -> Option<u64> {
        self.text.parse::<farpath_units::Bytes>().ok().map(|bytes| bytes.0)
    }

    fn ms(&self) -> Option<u64> {
        let time = self.text.parse::<farpath_units::Duration>().ok()?;
        Some(time.as_nanos().div_ceil(1_000_000))
    }

    fn count(&self) -> Option<u64> {
        self.text.parse().ok()
    }
}

fn flag(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

/// The kernel's name of a controller. A tree that has version 3 of BBR calls it as version 1.
fn control(kind: CongestionControlKind) -> &'static str {
    kind.linux_name().unwrap_or("bbr")
}

/// Linux: `Documentation/networking/ip-sysctl.rst`, `tcp(7)`, `ip-route(8)`, `tc-fq(8)`. What Linux always does has none.
fn linux(key: &str, value: &Value, now: &Config, sends: bool) -> Option<Setting> {
    let new = Setting::default;
    let congestion = &now.congestion;
    Some(match key {
        "congestion.control" => {
            let name = &value.text;
            let mut setting = new();
            if name == "bbr" {
                setting =
                    setting.root("modprobe tcp_bbr", "modprobe -r tcp_bbr   # once no connection uses it");
            }
            setting
                .sysctl("net.ipv4.tcp_congestion_control", name, control(congestion.control))
                .check("ss -tin dst PEER   # names the controller of each connection")
                .program(&[
                    format!("C: setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"{name}\", {})", name.len()),
                    format!(
                        "Python: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b\"{name}\")"
                    ),
                    format!("iperf3 -C {name}"),
                ])
        }
        "congestion.initial_window" => new().route(&format!("initcwnd {}", value.count()?)),
        "congestion.initial_ssthresh" => {
            let segments = value.bytes()? / now.mss.0.max(1);
            new().route(&format!("ssthresh {segments}"))
        }
        "congestion.hystart" => new()
            .root(
                "echo 1 > /sys/module/tcp_cubic/parameters/hystart",
                "echo 0 > /sys/module/tcp_cubic/parameters/hystart",
            )
            .check("cat /sys/module/tcp_cubic/parameters/hystart   # CUBIC alone has it")
            .affects("every connection of this machine with CUBIC"),
        "congestion.restart_after_idle" => new().sysctl(
            "net.ipv4.tcp_slow_start_after_idle",
            flag(value.text == "true"),
            flag(congestion.restart_after_idle),
        ),
        "congestion.cwnd_clamp" => new().route("cwnd 0"),
        "receive.buffer" => {
            let rmem = |bytes: u64| bytes.saturating_mul(2);
            let limit = (rmem(value.bytes()?), rmem(now.receive.buffer.0));
            buffer(limit, "net.ipv4.tcp_rmem", "SO_RCVBUF", "131072")
        }
        "send.buffer" => {
            let before = now.send.buffer.map_or(4 << 20, |buffer| buffer.0);
            let limit = (value.bytes()?.saturating_mul(3) / 2, before);
            buffer(limit, "net.ipv4.tcp_wmem", "SO_SNDBUF", "16384")
        }
        "send.window_scaling" => new().sysctl(
            "net.ipv4.tcp_window_scaling",
            flag(value.text == "true"),
            flag(now.send.window_scaling),
        ),
        "send.timestamps" => {
            new().sysctl("net.ipv4.tcp_timestamps", flag(value.text == "true"), flag(now.send.timestamps))
        }
        "send.ecn" => new()
            .sysctl("net.ipv4.tcp_ecn", if value.text == "request" { "1" } else { "2" }, "2")
            .check("ss -tin dst PEER   # shows `ecn` where both ends agreed"),
        "send.pacing" => new()
            .root("tc qdisc replace dev DEVICE root fq", "tc qdisc del dev DEVICE root")
            .check("tc -s qdisc show dev DEVICE")
            .affects("everything that leaves by DEVICE: each flow has a queue of its own there")
            .program(&["C: setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate)".to_owned()]),
        "send.ttl" => new().sysctl("net.ipv4.ip_default_ttl", &value.text, now.send.ttl),
        "recovery.sack" => new()
            .sysctl("net.ipv4.tcp_sack", flag(value.text == "true"), flag(now.recovery.sack))
            .check("ss -tin dst PEER   # shows `sack` where both ends agreed"),
        "recovery.rack" => {
            new().sysctl("net.ipv4.tcp_recovery", flag(value.text == "true"), flag(now.recovery.rack))
        }
        "recovery.tail_loss_probe" if sends => new().sysctl(
            "net.ipv4.tcp_early_retrans",
            if value.text == "true" { "3" } else { "0" },
            if now.recovery.tail_loss_probe { "3" } else { "0" },
        ),
        "recovery.frto" => new().sysctl(
            "net.ipv4.tcp_frto",
            if value.text == "true" { "2" } else { "0" },
            if now.recovery.frto { "2" } else { "0" },
        ),
        "receive.ack_every" if value.text == "1" => new().route("quickack 1").program(&[
            "C: setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one)   # again after each read"
                .to_owned(),
        ]),
        "rto.min" => new().route(&format!("rto_min {}ms", value.ms()?)),
        // TCP_RTO_MAX_SEC: no Linux waits longer than two minutes.
        "rto.max" if value.ms()? <= 120_000 => new().sysctl(
            "net.ipv4.tcp_rto_max_ms",
            value.ms()?,
            (now.rto.max.as_nanos() / 1_000_000).min(120_000),
        ),
        "handshake.syn_attempts" => {
            // What does not double is beside it (`tcp_syn_linear_timeouts`).
            let beside = u64::from(now.handshake.syn_linear_timeouts) + 1;
            let retries = |attempts: Option<u64>| {
                attempts.map_or(127, |attempts| attempts.saturating_sub(beside).clamp(1, 127))
            };
            let before = now.handshake.syn_attempts.map(u64::from);
            new().sysctl("net.ipv4.tcp_syn_retries", retries(value.count()), retries(before))
        }
        "handshake.synack_attempts" => new().sysctl(
            "net.ipv4.tcp_synack_retries",
            value.count()?.saturating_sub(1).min(255),
            now.handshake.synack_attempts.map_or(255, |attempts| attempts.saturating_sub(1).min(255)),
        ),
        "handshake.data_retries" => new().sysctl(
            "net.ipv4.tcp_retries2",
            value.count().unwrap_or(255).min(255),
            now.handshake.data_retries.map_or(255, |retries| retries.min(255)),
        ),
        // More than Ethernet's: devices and links, not a route.
        "mss" if value.bytes()? > 1460 => new()
            .root("ip link set dev DEVICE mtu 9000", format!("ip link set dev DEVICE mtu {}", now.mss.0 + 40))
            .check("ping -M do -s 8972 PEER   # answers where every link carries them")
            .affects("everything that leaves by DEVICE; switches and routers on the way are set by those who run them"),
        "mss" => new()
            .route(&format!("advmss {}", value.bytes()?))
            .program(&[format!("iperf3 -M {}", value.bytes()?)]),
        _ => return None,
    })
}

/// A limit of what a buffer grows to, in the kernel's own count, and the one before it. Of a receive buffer it announces half
/// (`tcp_adv_win_scale` 1). A send buffer wakes its program when a third is free (`sk_stream_min_wspace()`): two thirds of it are
/// always full. An option of a socket is doubled (`socket(7)`).
fn buffer((limit, before): (u64, u64), sysctl: &str, option: &str, first: &str) -> Setting {
    let value = |limit: u64| format!("4096 {first} {limit}");
    let bytes = limit / 2;
    let core = if option == "SO_RCVBUF" { "net.core.rmem_max" } else { "net.core.wmem_max" };
    let flag = format!("iperf3 -w {bytes}");
    Setting::default()
        .sysctl(sysctl, value(limit), value(before))
        .check("ss -tinm dst PEER   # `rcv_space`, and rb and tb of skmem")
        .affects("every connection opened afterwards may come to hold so much memory")
        .program(&[
            format!("C: int n = {bytes}; setsockopt(fd, SOL_SOCKET, {option}, &n, sizeof n)   # before connect; up to {core}"),
            format!("Python: sock.setsockopt(socket.SOL_SOCKET, socket.{option}, {bytes})   # before connect"),
            flag,
        ])
}

/// FreeBSD: `tcp(4)`, `mod_cc(4)`.
fn freebsd(key: &str, value: &Value, now: &Config) -> Option<Setting> {
    let new = |name: &str, value: String, before: String| Setting {
        root: vec![format!("sysctl {name}={value}")],
        undo: vec![format!("sysctl {name}={before}")],
        sysctls: vec![(name.to_owned(), value)],
        check: format!("sysctl {name}"),
        affects: "every connection of this host from then on".to_owned(),
        ..Setting::default()
    };
    let flag = |name| Some(new(name, flag(value.text == "true").to_owned(), "0".to_owned()));
    match key {
        "congestion.control" => {
            let before = control(now.congestion.control).to_owned();
            Some(new("net.inet.tcp.cc.algorithm", value.text.clone(), before.replace("reno", "newreno")))
        }
        "congestion.initial_window" => Some(new(
            "net.inet.tcp.initcwnd_segments",
            value.text.clone(),
            now.congestion.initial_window.to_string(),
        )),
        "receive.buffer" => Some(new(
            "net.inet.tcp.recvbuf_max",
            value.bytes()?.to_string(),
            now.receive.buffer.0.to_string(),
        )),
        "send.buffer" => {
            let before = now.send.buffer.map_or(2 << 20, |buffer| buffer.0);
            Some(new("net.inet.tcp.sendbuf_max", value.bytes()?.to_string(), before.to_string()))
        }
        "send.window_scaling" | "send.timestamps" => flag("net.inet.tcp.rfc1323"),
        "recovery.sack" => flag("net.inet.tcp.sack.enable"),
        "send.ecn" => Some(new("net.inet.tcp.ecn.enable", "1".to_owned(), "2".to_owned())),
        "receive.ack_every" if value.text == "1" => {
            Some(new("net.inet.tcp.delayed_ack", "0".to_owned(), "1".to_owned()))
        }
        "rto.min" => {
            let before = now.rto.min.as_nanos() / 1_000_000;
            Some(new("net.inet.tcp.rexmit_min", value.ms()?.to_string(), before.to_string()))
        }
        _ => None,
    }
}

/// Windows from 8 and Server 2012 on: `Set-NetTCPSetting` (Microsoft Learn, module NetTCPIP). It says that Windows 10 takes none of them.
fn windows(key: &str, value: &Value, now: &Config) -> Option<Setting> {
    let powershell = |option: &str, value: &str, before: &str| {
        Setting {
        root: vec![format!("Set-NetTCPSetting -SettingName InternetCustom -{option} {value}")],
        undo: vec![format!("Set-NetTCPSetting -SettingName InternetCustom -{option} {before}")],
        check: "Get-NetTCPSetting -SettingName InternetCustom".to_owned(),
        affects: "every connection with this template (Get-NetTransportFilter says which); Windows 10 refuses it, Windows Server takes it".to_owned(),
        ..Setting::default()
    }
    };
    match key {
        "congestion.control" if value.text == "cubic" => Some(powershell("CongestionProvider", "CUBIC", "CTCP")),
        "congestion.control" if value.text == "bbr" => Some(Setting {
            root: vec![
                "netsh int tcp set supplemental template=internet congestionprovider=bbr2   # Windows 11 22H2 on; not in Microsoft's documentation".to_owned(),
            ],
            undo: vec!["netsh int tcp set supplemental template=internet congestionprovider=cubic".to_owned()],
            check: "Get-NetTCPSetting | Select SettingName, CongestionProvider".to_owned(),
            affects: "every connection with this template".to_owned(),
            ..Setting::default()
        }),
        "congestion.initial_window" => {
            let before = now.congestion.initial_window.to_string();
            Some(powershell("InitialCongestionWindowMss", &value.text, &before))
        }
        "send.ecn" => Some(powershell("EcnCapability", "Enabled", "Disabled")),
        "receive.ack_every" => Some(powershell("DelayedAckFrequency", &value.text, "2")),
        "rto.min" => {
            let before = now.rto.min.as_nanos() / 1_000_000;
            Some(powershell("MinRtoMs", &value.ms()?.to_string(), &before.to_string()))
        }
        _ => None,
    }
}

/// Windows Server 2003 (Microsoft KB 224829; TechNet cc757402 for `Tcp1323Opts`): the registry below `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`, and nothing else.
fn windows_registry(key: &str, value: &Value) -> Option<Setting> {
    let registry = |name: &str, value: u64| Setting {
        root: vec![format!(
            "reg add HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters /v {name} /t REG_DWORD /d {value}"
        )],
        undo: vec![format!(
            "reg delete HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters /v {name}"
        )],
        check: "reg query HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters".to_owned(),
        affects: "every connection of this host after its next start".to_owned(),
        ..Setting::default()
    };
    match key {
        "receive.buffer" => Some(registry("TcpWindowSize", value.bytes()?)),
        "send.window_scaling" => Some(registry("Tcp1323Opts", u64::from(value.text == "true"))),
        "send.timestamps" => Some(registry("Tcp1323Opts", if value.text == "true" { 3 } else { 1 })),
        "recovery.sack" => Some(registry("SackOpts", u64::from(value.text == "true"))),
        _ => None,
    }
}

/// What a program does: how it writes, and over how many connections.
fn of_program(change: &Override) -> Option<Setting> {
    let setting = Setting { key: change.key.clone(), ..Setting::default() };
    let value = Value::from_change(change);
    let program = match change.key.as_str() {
        "transfer.window" => {
            let bytes = value.bytes()?;
            let bits = bytes.next_power_of_two().ilog2();
            setting.program(&[
                format!("HTTP/2: SETTINGS_INITIAL_WINDOW_SIZE {bytes} (RFC 9113 section 6.5.2)"),
                format!("nghttp -w {bits} URL"),
                format!("Go: http2.Server{{MaxUploadBufferPerStream: {bytes}}}"),
                "curl --http1.1 URL   # HTTP/1.1 has no window of its own".to_owned(),
                "OpenSSH has no option for it: several sessions at once, or rsync:// and HTTP in place of scp".to_owned(),
            ])
        }
        "transfer.write_size" => setting.program(&[
            format!("C: write(fd, buffer, {})", value.bytes()?),
            format!("Python: shutil.copyfileobj(file, sock.makefile(\"wb\"), {})", value.bytes()?),
        ]),
        "transfer.think_time" => setting.program(&[
            "C: sendfile(sock, file, &offset, count), or a second thread that reads ahead".to_owned(),
            "Python: sock.sendfile(file)".to_owned(),
        ]),
        _ => return of_connections(change),
    };
    Some(
        program
            .check("ss -tin dst PEER   # `app_limited` while the program, not TCP, holds back")
            .affects("this program alone"),
    )
}

/// Several connections, which a program opens.
fn of_connections(change: &Override) -> Option<Setting> {
    let count = change.text().strip_prefix("flow=")?.split("count = ").nth(1)?.split(',').next()?.trim();
    let setting = Setting { key: change.key.clone(), ..Setting::default() };
    Some(
        setting
            .program(&[
                format!("iperf3 -P {count}"),
                format!("aria2c -x {count} -s {count} URL   # where the server serves parts of a file"),
            ])
            .check("ss -tn dst PEER   # one line for each connection")
            .affects("this transfer, and whoever shares the path with it"),
    )
}

/// A queue of the path, where a Linux machine has it.
fn of_path(change: &Override) -> Option<Setting> {
    let value = Value::from_change(change);
    let is = |key: &str| change.key.starts_with("path.") && change.key.split('.').nth(2) == Some(key);
    let packets = || value.bytes().map(|bytes| bytes.div_ceil(1500).max(1));
    let setting = if is("queue") {
        let limit = packets()?;
        Setting::default().root(
            format!("tc qdisc replace dev DEVICE root pfifo limit {limit}"),
            "tc qdisc del dev DEVICE root",
        )
    } else if is("aqm") {
        // `fq-codel` of a path is the kernel's `fq_codel`.
        let kind = value.text.replace('-', "_");
        Setting::default()
            .root(format!("tc qdisc replace dev DEVICE root {kind}"), "tc qdisc del dev DEVICE root")
    } else if is("mark") {
        // Its threshold is a time: CoDel's own target of 5 ms, or what the path's rate makes of the bytes.
        Setting::default()
            .root("tc qdisc replace dev DEVICE root fq_codel ecn", "tc qdisc del dev DEVICE root")
    } else {
        return None;
    };
    Some(Setting { key: change.key.clone(), ..setting }
        .check("tc -s qdisc show dev DEVICE   # `backlog`, `dropped`, `ecn_mark`")
        .affects("everything that leaves by DEVICE, the one before the slowest link; where a shaper is in force there, below that"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;

    fn scenario(stack: &str) -> Scenario {
        let text = format!(
            "title = \"T\"\nsender.stack = \"{stack}\"\nreceiver.stack = \"{stack}\"\ntransfer.size = \"1 MB\"\n\
             path = [{{ element = \"delay\", delay = \"10 ms\" }}]\n"
        );
        Experiment::parse(&text, "t.toml", &[]).expect("it is one").point(0).scenario.clone()
    }

    fn commands(stack: &str, changes: &[&str]) -> Vec<HostCommands> {
        let changes: Vec<Override> = changes.iter().map(|text| text.parse().expect("a change")).collect();
        commands_for(&scenario(stack), &changes)
    }

    #[test]
    fn each_end_is_told_what_it_has_to_do_and_how_to_undo_it() {
        let found = commands(
            "linux-6",
            &[
                "sender.congestion.control=bbr",
                "receiver.receive.buffer=8 MB",
                "sender.congestion.initial_window=40",
            ],
        );
        let [sender, receiver] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((sender.end, receiver.end), ("sender", "receiver"));
        let bbr = &sender.settings[0];
        assert!(bbr.root.contains(&"sysctl -w net.ipv4.tcp_congestion_control=bbr".to_owned()), "{bbr:?}");
        assert!(bbr.undo.contains(&"sysctl -w net.ipv4.tcp_congestion_control=cubic".to_owned()), "{bbr:?}");
        let window = &sender.settings[1];
        assert!(
            window.root[0].ends_with("initcwnd 40") && window.undo == ["ip route del PEER"],
            "{window:?}"
        );
        let buffer = &receiver.settings[0];
        assert_eq!(buffer.sysctls, [("net.ipv4.tcp_rmem".to_owned(), "4096 131072 16000000".to_owned())]);
        for setting in sender.settings.iter().chain(&receiver.settings) {
            assert!(setting.is_needed());
            assert!(!setting.check.is_empty() && !setting.affects.is_empty() && !setting.undo.is_empty());
        }
    }

    /// `ip route replace` with one metric took away the one that the line before had set.
    #[test]
    fn metrics_of_one_route_stand_on_one_line() {
        let sets =
            ["sender.congestion.initial_window=40", "sender.recovery.sack=false", "sender.rto.min=50 ms"];
        let found = commands("linux-6", &sets);
        let [route, sack] = found[0].settings.as_slice() else { panic!("{found:?}") };
        assert_eq!(route.root, ["ip route replace PEER via GATEWAY dev DEVICE initcwnd 40 rto_min 50ms"]);
        assert_eq!(route.undo, ["ip route del PEER"]);
        assert_eq!(route.key, "sender.congestion.initial_window, sender.rto.min");
        assert_eq!(sack.root, ["sysctl -w net.ipv4.tcp_sack=0"]);
    }

    #[test]
    fn other_systems_have_commands_of_their_own() {
        let freebsd = commands("freebsd", &["sender.congestion.control=cubic"]);
        assert_eq!(freebsd[0].settings[0].root, ["sysctl net.inet.tcp.cc.algorithm=cubic"]);
        let windows = commands("windows-modern", &["sender.congestion.initial_window=40"]);
        assert!(windows[0].settings[0].root[0].contains("InitialCongestionWindowMss 40"), "{windows:?}");
    }

    /// Of the eleven SYNs that a Linux of today sends, four are beside `tcp_syn_retries`.
    #[test]
    fn syns_are_counted_as_the_kernel_counts_them() {
        let found = commands("linux-6", &["receiver.handshake.syn_attempts=23"]);
        let syns = &found[0].settings[0];
        assert_eq!(syns.root, ["sysctl -w net.ipv4.tcp_syn_retries=18"]);
        assert_eq!(syns.undo, ["sysctl -w net.ipv4.tcp_syn_retries=6"]);
    }

    /// What Linux does in any case is no command.
    #[test]
    fn what_a_system_always_does_is_left_out() {
        assert_eq!(commands("linux-6", &["sender.recovery.limited_transmit=true"]), []);
    }

    /// Half of a receive buffer is announced, and two thirds of a send buffer are always full; what is undone is Linux's own.
    #[test]
    fn a_send_buffer_is_not_counted_as_a_receive_buffer_is() {
        let found = commands("linux-6", &["sender.send.buffer=8 MB"]);
        let buffer = &found[0].settings[0];
        assert_eq!(buffer.root, ["sysctl -w net.ipv4.tcp_wmem=\"4096 16384 12000000\""]);
        assert_eq!(buffer.undo, ["sysctl -w net.ipv4.tcp_wmem=\"4096 16384 4194304\""]);
        assert!(buffer.program.iter().any(|line| line.contains("SO_SNDBUF, 6000000")), "{buffer:?}");
    }

    #[test]
    fn what_is_in_force_is_not_typed_in_again() {
        let found = commands("linux-6", &["sender.send.window_scaling=true"]);
        assert!(!found[0].settings[0].is_needed(), "{found:?}");
    }

    #[test]
    fn a_queue_is_set_where_it_is() {
        let found = commands("linux-6", &["path.link.queue=150 kB"]);
        assert_eq!(found[0].settings[0].root, ["tc qdisc replace dev DEVICE root pfifo limit 100"]);
        let found = commands("linux-6", &["path.link.aqm=fq-codel"]);
        assert_eq!(found[0].settings[0].root, ["tc qdisc replace dev DEVICE root fq_codel"]);
    }
}
