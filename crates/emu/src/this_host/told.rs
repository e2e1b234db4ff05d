//! What the facts of a machine say of the parameters of a stack.

use super::{HostFacts, RouteFacts, version};
use farpath_experiment::Stack;
use farpath_tcp::config::{CongestionControlKind, EcnMode};
use farpath_units::{Bytes, Duration};
use std::collections::BTreeMap;

/// A stack as the facts have it.
pub(super) struct Told {
    pub(super) stack: Stack,
    /// What said each value, by the parameter.
    pub(super) sources: BTreeMap<String, String>,
    pub(super) not_simulated: Vec<String>,
}

impl Told {
    /// `base` with what `facts` say in its place.
    pub(super) fn by(facts: &HostFacts, base: Stack) -> Told {
        let mut told = Told { stack: base, sources: BTreeMap::new(), not_simulated: Vec::new() };
        told.switches(facts);
        told.buffers(facts);
        told.timers(facts);
        told.counts(facts);
        told.kernel_alone(facts);
        let control = facts.sysctls.get("net.ipv4.tcp_congestion_control");
        let control = control.map(|name| (name.as_str(), "net.ipv4.tcp_congestion_control"));
        let of_route = facts.route.as_ref().and_then(|route| route.congctl.as_deref());
        if let Some((name, from)) = of_route.map(|name| (name, "route: congctl")).or(control) {
            told.controller(name, from);
        }
        match &facts.route {
            Some(route) => told.route(route),
            None => told.lacks(
                "no default route: attributes of a route are those of the base; --to ADDRESS names another",
            ),
        }
        told
    }

    fn says(&mut self, key: &str, from: &str, value: impl ToString) {
        self.sources.insert(key.to_owned(), format!("{from} = {}", value.to_string()));
    }

    fn lacks(&mut self, what: impl Into<String>) {
        self.not_simulated.push(what.into());
    }

    /// The number that a sysctl of TCP says, its name, and that name for a comment.
    fn number(facts: &HostFacts, name: &str) -> Option<(u64, String)> {
        let name = format!("net.ipv4.{name}");
        // As far as a stack file takes it.
        let number =
            facts.sysctls.get(&name)?.trim().parse().ok().filter(|number| i64::try_from(*number).is_ok())?;
        Some((number, name))
    }

    fn switches(&mut self, facts: &HostFacts) {
        let rack_is_sack = version(&facts.release).is_some_and(|version| version >= (6, 17));
        let config = &mut self.stack.config;
        let (recovery, send) = (&mut config.recovery, &mut config.send);
        let mut told = Vec::new();
        let mut switch = |sysctl: &str, key: &str, field: &mut bool, is_on: fn(u64) -> bool| {
            if let Some((number, name)) = Told::number(facts, sysctl) {
                *field = is_on(number);
                told.push((key.to_owned(), name, number));
            }
        };
        let nonzero: fn(u64) -> bool = |number| number != 0;
        switch("tcp_sack", "recovery.sack", &mut recovery.sack, nonzero);
        switch("tcp_dsack", "recovery.dsack", &mut recovery.dsack, nonzero);
        switch("tcp_dsack", "recovery.undo_by_dsack", &mut recovery.undo_by_dsack, nonzero);
        switch("tcp_frto", "recovery.frto", &mut recovery.frto, nonzero);
        let probes: fn(u64) -> bool = |number| number >= 3;
        switch("tcp_early_retrans", "recovery.tail_loss_probe", &mut recovery.tail_loss_probe, probes);
        if !rack_is_sack {
            let bit: fn(u64) -> bool = |number| number & 1 != 0;
            switch("tcp_recovery", "recovery.rack", &mut recovery.rack, bit);
        }
        switch("tcp_timestamps", "send.timestamps", &mut send.timestamps, nonzero);
        switch("tcp_window_scaling", "send.window_scaling", &mut send.window_scaling, nonzero);
        let idle = &mut config.congestion.restart_after_idle;
        switch("tcp_slow_start_after_idle", "congestion.restart_after_idle", idle, nonzero);
        for (key, name, number) in told {
            self.says(&key, &name, number);
        }
        if let Some((number, name)) = Told::number(facts, "tcp_ecn") {
            let mode = match number {
                0 => EcnMode::Off,
                1 => EcnMode::Request,
                2 => EcnMode::Accept,
                _ => {
                    self.lacks(format!("{name} = {number}: simulated ends know no accurate ECN"));
                    return;
                }
            };
            self.stack.config.send.ecn = mode;
            self.says("send.ecn", &name, number);
        }
    }

    fn buffers(&mut self, facts: &HostFacts) {
        let three = |name: &str| {
            let words: Vec<u64> = facts.sysctls.get(name)?.split_whitespace().flat_map(str::parse).collect();
            <[u64; 3]>::try_from(words).ok()
        };
        let grows = Told::number(facts, "tcp_moderate_rcvbuf").is_none_or(|(number, _)| number != 0);
        let name = "net.ipv4.tcp_rmem";
        if let Some([_, first, most]) = three(name) {
            // Half of it counts as overhead.
            let room = if grows { most } else { first };
            self.stack.config.receive.buffer = Bytes((room / 2).max(1));
            self.says("receive.buffer", name, format!("{}; half of {room} is window", facts.sysctls[name]));
            if grows && first != 131_072 {
                self.lacks(format!(
                    "{name}: a window begins with {first} B of memory; simulated ones begin with 131072 B"
                ));
            }
        }
        if !grows {
            self.stack.config.receive.autotuning = false;
            self.stack.linux.autotuning = false;
            for key in ["receive.autotuning", "linux.autotuning"] {
                self.says(key, "net.ipv4.tcp_moderate_rcvbuf", 0);
            }
        }
        let name = "net.ipv4.tcp_wmem";
        if let Some([_, _, most]) = three(name) {
            self.stack.config.send.buffer = Some(Bytes(most.max(1)));
            self.says("send.buffer", name, &facts.sysctls[name]);
        }
        if let Some((number, name)) = Told::number(facts, "tcp_adv_win_scale")
            && number != 1
            && version(&facts.release).is_some_and(|version| version < (6, 5))
        {
            self.lacks(format!("{name} = {number}: simulated windows are half of their memory"));
        }
    }

    fn timers(&mut self, facts: &HostFacts) {
        if let Some((number, name)) = Told::number(facts, "tcp_rto_max_ms") {
            let max =
                Duration::from_nanos(number.saturating_mul(1_000_000)).max(self.stack.config.rto.initial);
            let config = &mut self.stack.config;
            (config.rto.max, config.send.persist_max) = (max, max);
            for key in ["rto.max", "send.persist_max"] {
                self.says(key, &name, number);
            }
        }
        if let Some((number, name)) = Told::number(facts, "tcp_rto_min_us") {
            self.floor(Duration::from_nanos(number.saturating_mul(1_000)), &name, number);
        }
        match facts.hz {
            Some(hz) if hz > 0 => {
                self.stack.config.rto.tick = Duration::from_nanos(1_000_000_000 / u64::from(hz));
                self.says("rto.tick", "CONFIG_HZ", hz);
            }
            _ => {
                let tick = self.stack.config.rto.tick;
                self.lacks(format!("CONFIG_HZ is not known here: rto.tick is {tick}, the base's"));
            }
        }
    }

    /// The floor of the RTO, and what follows it.
    fn floor(&mut self, min: Duration, from: &str, value: impl ToString) {
        let config = &mut self.stack.config;
        // Whatever a kernel may say, it is a floor.
        let min = min.clamp(Duration::from_millis(1), config.rto.max);
        config.rto.min = min;
        config.recovery.probe_ack_delay = min;
        config.send.persist_min = min.max(Duration::from_millis(200)).min(config.send.persist_max);
        let value = value.to_string();
        for key in ["rto.min", "recovery.probe_ack_delay", "send.persist_min"] {
            self.says(key, from, &value);
        }
    }

    fn counts(&mut self, facts: &HostFacts) {
        let small = |name: &str| {
            let (number, name) = Told::number(facts, name)?;
            Some((u32::try_from(number).ok()?, name))
        };
        let linear = small("tcp_syn_linear_timeouts");
        if let Some((count, name)) = &linear {
            self.stack.config.handshake.syn_linear_timeouts = *count;
            self.says("handshake.syn_linear_timeouts", name, count);
        }
        if let Some((count, name)) = small("tcp_syn_retries") {
            let linear = linear.map_or(0, |(count, _)| count);
            self.stack.config.handshake.syn_attempts = Some(count.saturating_add(linear).saturating_add(1));
            self.says(
                "handshake.syn_attempts",
                &name,
                format!("{count}, and tcp_syn_linear_timeouts = {linear}"),
            );
        }
        if let Some((count, name)) = small("tcp_synack_retries") {
            self.stack.config.handshake.synack_attempts = Some(count.saturating_add(1));
            self.says("handshake.synack_attempts", &name, count);
        }
        if let Some((count, name)) = small("tcp_retries2") {
            self.stack.config.handshake.data_retries = Some(count);
            self.says("handshake.data_retries", &name, count);
        }
        if let Some((count, name)) = small("tcp_reordering") {
            self.stack.config.recovery.dup_ack_threshold = count.max(1);
            self.says("recovery.dup_ack_threshold", &name, count);
        }
        if let Some((count, name)) = small("tcp_comp_sack_nr") {
            self.stack.config.receive.compressed_acks = count;
            self.says("receive.compressed_acks", &name, count);
        }
        if let Some((count, name)) = small("tcp_tso_win_divisor") {
            if count == 0 {
                self.lacks(format!(
                    "{name} = 0: super-packets wait by another rule; simulated ones wait for nothing"
                ));
            }
            self.stack.config.send.tso_win_divisor = count;
            self.says("send.tso_win_divisor", &name, count);
        }
        if let Some((ttl, name)) = small("ip_default_ttl") {
            self.stack.config.send.ttl = u8::try_from(ttl).unwrap_or(u8::MAX).max(1);
            self.says("send.ttl", &name, ttl);
        }
    }

    /// What the kernel knows and a simulated end does not.
    fn kernel_alone(&mut self, facts: &HostFacts) {
        for name in ["tcp_max_reordering", "tcp_autocorking", "tcp_backlog_ack_defer"] {
            if let Some((number, name)) = Told::number(facts, name) {
                self.says(&format!("linux.sysctl.{name}"), &name, number);
                self.stack.linux.sysctls.insert(name, number.to_string());
            }
        }
        let defaults = [
            (
                "tcp_no_metrics_save",
                1,
                "connections learn ssthresh and round trips of earlier ones; simulated ones do not",
            ),
            ("tcp_comp_sack_delay_ns", 1_000_000, "simulated compressed ACKs wait for 1 ms at the most"),
            ("tcp_comp_sack_slack_ns", 100_000, "simulated compressed ACKs have no slack"),
            ("tcp_plb_enabled", 0, "simulated flows do not change their path"),
            ("tcp_shrink_window", 0, "simulated windows do not shrink"),
            ("tcp_thin_linear_timeouts", 0, "simulated timeouts of thin streams double"),
            ("tcp_abort_on_overflow", 0, "simulated ends have no queue of connections"),
            ("tcp_mtu_probing", 0, "simulated ends do not probe for the MTU of a path"),
            ("tcp_stdurg", 0, "nothing is urgent here"),
            ("tcp_pingpong_thresh", 1, "simulated ends take a connection for interactive after one answer"),
        ];
        for (name, usual, why) in defaults {
            if let Some((number, name)) = Told::number(facts, name)
                && number != usual
            {
                self.lacks(format!("{name} = {number}: {why}"));
            }
        }
    }

    fn controller(&mut self, name: &str, from: &str) {
        // As stack files take it.
        if !(1..16).contains(&name.len())
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        {
            return;
        }
        match CongestionControlKind::of_linux(name) {
            Some(kind) => {
                self.stack.config.congestion.control = kind;
                self.says("congestion.control", from, name);
            }
            None => {
                let simulated = self.stack.config.congestion.control.name();
                self.stack.linux.congestion_control = Some(name.to_owned());
                self.says("linux.congestion_control", from, name);
                self.lacks(format!(
                    "{from} = {name}: emulation uses it, simulation has {simulated} in its place"
                ));
            }
        }
    }

    fn route(&mut self, route: &RouteFacts) {
        // IPv6 has 20 B more.
        let headers = farpath_tcp::HEADERS.0 + if route.to.is_some_and(|to| to.is_ipv6()) { 20 } else { 0 };
        let by_mtu = route.mtu.map(|mtu| (u64::from(mtu).saturating_sub(headers), format!("mtu = {mtu}")));
        let by_route = route.advmss.map(|mss| (u64::from(mss), format!("advmss = {mss}")));
        let least =
            by_mtu.into_iter().chain(by_route).filter(|(mss, _)| *mss > 12).min_by_key(|(mss, _)| *mss);
        if let Some((mss, from)) = least {
            self.stack.config.mss = Bytes(mss).min(farpath_tcp::MAX_MSS);
            self.sources.insert("mss".to_owned(), format!("route over {}: {from}", route.device));
        }
        // An attribute of zero is none.
        if let Some(segments) = route.initcwnd.filter(|segments| *segments > 0) {
            self.stack.config.congestion.initial_window = segments;
            self.says("congestion.initial_window", "route: initcwnd", segments);
        }
        if let Some(segments) = route.initrwnd.filter(|segments| *segments > 0) {
            self.lacks(format!("route: initrwnd = {segments}: simulated windows begin as those of the base"));
        }
        if let Some(window) = route.window.filter(|window| *window > 0) {
            self.lacks(format!("route: window = {window}: it bounds the window of the SYN alone"));
        }
        if route.quickack {
            self.stack.config.receive.ack_every = 1;
            self.says("receive.ack_every", "route: quickack", 1);
        }
        if let Some(ms) = route.rto_min_ms.filter(|ms| *ms > 0) {
            self.floor(Duration::from_millis(u64::from(ms)), "route: rto_min", format!("{ms}ms"));
        }
        match route.qdisc.as_deref() {
            Some("fq") => {
                self.stack.config.send.pacing = true;
                self.says("send.pacing", &format!("qdisc of {}", route.device), "fq");
            }
            Some(qdisc @ ("fq_codel" | "cake" | "codel" | "pie" | "fq_pie" | "red" | "netem" | "tbf")) => {
                let device = &route.device;
                self.lacks(format!(
                    "{device} has the queue {qdisc}: it is part of a path here, not of a stack"
                ));
            }
            _ => {}
        }
    }
}
