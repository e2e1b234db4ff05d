//! What held a connection, for people: limits, the longest waits, and what is known of the path.

use crate::Table;
use farpath_diagnose::both::{BothSides, OneWay};
use farpath_diagnose::{ConnectionReport, Inferred, Losses, ScaleToldBy, StackSeen, Timers, ToldBy, Vantage};
use farpath_units::bit_rate_text;

/// The limits, the longest first.
pub fn limits_table(connection: &ConnectionReport) -> Table {
    let whole = connection.duration_s;
    let rows = connection.limits.iter().map(|share| {
        let percent = if whole > 0.0 { 100.0 * share.time_s / whole } else { 0.0 };
        let time = format!("{:.3}", share.time_s);
        [share.limit.name().to_owned(), time, format!("{percent:.1}"), share.bytes.to_string()]
    });
    if has_frames(connection) {
        return Table::from_rows(["limit", "time, s", "share, %", "bytes"], &rows.collect::<Vec<_>>());
    }
    // What was sent behind each limit is in captures alone.
    let rows: Vec<_> = rows.map(|[limit, time, share, _]| [limit, time, share]).collect();
    Table::from_rows(["limit", "time, s", "share, %"], &rows)
}

/// The longest waits for new data.
pub fn waits_table(connection: &ConnectionReport) -> Table {
    let rows = connection.moments.iter().map(|moment| {
        let (at, time) = (format!("{:.3}", moment.at_s), format!("{:.3}", moment.time_s));
        [moment.limit.name().to_owned(), at, time, moment.frame.to_string()]
    });
    Table::from_rows(["longest waits", "at, s", "for, s", "until frame"], &rows.collect::<Vec<_>>())
}

/// What is known of the connection and its path: terms, and what is said of each.
pub fn connection_facts(connection: &ConnectionReport) -> Vec<(&'static str, String)> {
    let least = connection.min_rtt_s.map_or_else(|| "unknown".to_owned(), ms);
    let percentiles = connection.rtt_s.map_or_else(String::new, |[median, most, all]| {
        format!("; {} (median), {} (95 %), {} (99 %)", ms(median), ms(most), ms(all))
    });
    let lost = match connection.bytes_not_captured {
        0 => String::new(),
        bytes => format!("; {bytes} B are not in the capture"),
    };
    let copies = match connection.copies {
        0 => String::new(),
        copies => format!("; {copies} are in the capture twice"),
    };
    let scale =
        connection.inferred.map_or_else(String::new, |Inferred { window_scale, scale_by, .. }| {
            let factor = 1 << window_scale;
            match scale_by {
                ScaleToldBy::Filled => {
                    format!("; scaled by {factor}, as the sender filled it again and again")
                }
                ScaleToldBy::Edge => format!("; scaled by {factor}, as its edge does not move back"),
                ScaleToldBy::AtLeast => {
                    format!("; scaled by {factor} at the least, and then hardly ever full")
                }
            }
        });
    let window = match connection.window {
        Some(window) => format!("{window} B at the most{scale}"),
        None => format!("unknown{scale}"),
    };
    let ConnectionReport { bytes, data_packets, retransmissions, bytes_back, .. } = connection;
    let mut facts = vec![
        (
            "sent",
            format!(
                "{bytes} B in {data_packets} packets, {retransmissions} of them again; {bytes_back} B back{lost}{copies}"
            ),
        ),
        ("segment", format!("{} B", connection.mss)),
        ("window", window),
        ("round trip", format!("{least} (least){percentiles}")),
        (
            "delivered",
            match connection.delivered_bit_per_s {
                Some(rate) => format!("{} at the most within a round trip", bit_rate_text(rate)),
                None => "unknown".to_owned(),
            },
        ),
    ];
    if let Some(rate) = connection.path_rate_bit_per_s {
        facts.push(("path rate", format!("{} of payload", bit_rate_text(rate))));
    }
    if connection.marked > 0 || connection.marks_echoed > 0 {
        let ConnectionReport { marked, marks_echoed, .. } = connection;
        facts.push((
            "marks",
            format!(
                "{marked} packets with data by congested routers (CE); {marks_echoed} acknowledgments told the sender (ECE)"
            ),
        ));
    }
    facts.extend(lines("losses", losses(connection)));
    facts.extend(lines("timers", timers(&connection.timers)));
    if let Some(told) = &connection.iperf3 {
        let (least, most) = told.cwnd;
        let control =
            told.congestion_control.as_deref().unwrap_or("a congestion control that it does not name");
        facts.push((
            "iperf3",
            format!(
                "{control}, congestion window {least} to {most} B, where at most {} B were in flight; {} packets sent again",
                connection.most_in_flight, told.retransmits
            ),
        ));
    }
    if let Some(rate) = connection.granted_bit_per_s {
        facts.push(("granted", format!("{} by routers, headers included", bit_rate_text(rate as f64))));
    }
    if has_frames(connection) {
        let place = match connection.vantage {
            Vantage::NearSender => "near the sender",
            Vantage::NearReceiver => "near the receiver",
            Vantage::Middle => "between the ends",
            Vantage::Unknown => "unknown: the handshake is not in the capture, and nothing else tells",
        };
        let by = connection.inferred.map_or("", |inferred| match inferred.place_by {
            ToldBy::Timestamps => ", by timestamps: the handshake is not in the capture",
            ToldBy::Ttl => ", by times to live: the handshake is not in the capture",
        });
        facts.push(("capture", format!("{place}{by}")));
        for (term, stack) in [("sender", &connection.sender_stack), ("receiver", &connection.receiver_stack)]
        {
            facts.extend(stack.as_ref().map(|stack| (term, stack_seen(stack))));
        }
        if let Some(bytes) = connection.initial_window {
            facts.push((
                "first flight",
                format!("{bytes} B, {:.0} segments", bytes as f64 / f64::from(connection.mss.max(1))),
            ));
        }
        if let Some(tunnel) = connection.tunnel {
            facts.push(("tunnel", format!("{}; addresses are those inside of it", tunnel.name())));
        }
        facts.push(("Wireshark", display_filter(connection)));
    }
    facts
}

fn ms(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

/// Lines of one term, which the first of them has.
fn lines(term: &'static str, said: Vec<String>) -> impl Iterator<Item = (&'static str, String)> {
    said.into_iter().enumerate().map(move |(place, said)| (if place == 0 { term } else { "" }, said))
}

/// What is told of data that was sent again.
fn losses(connection: &ConnectionReport) -> Vec<String> {
    let ConnectionReport { retransmissions, retransmissions_at_queue, queue_s, .. } = connection;
    let Losses {
        repairs,
        by_timeout,
        tail,
        spurious,
        largest_repair,
        runs,
        longest_run,
        lost_retransmissions,
        dsacks,
    } = connection.losses;
    let mut said = Vec::new();
    if let Some(queue) = queue_s {
        let queue = ms(*queue);
        said.push(format!(
            "{retransmissions_at_queue} of {retransmissions} packets sent again when up to {queue} of queue stood"
        ));
    }
    if repairs > 0 {
        said.push(format!(
            "{repairs} repairs of up to {largest_repair} packets; {runs} runs of packets side by side, the longest of {longest_run}"
        ));
    }
    let counted = [
        (by_timeout, "repairs begun by a timeout or a probe"),
        (tail, "of these at the tail"),
        (spurious, "of these spurious, by timestamps"),
        (lost_retransmissions, "retransmissions lost, too"),
        (dsacks, "packets arrived twice (D-SACK)"),
    ];
    let counted: Vec<_> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    said.extend((!counted.is_empty()).then(|| counted.join(", ")));
    said
}

/// What is told of timers.
fn timers(timers: &Timers) -> Vec<String> {
    let Timers { delayed_acks, delayed_acks_s, window_probes, keep_alives } = *timers;
    let mut said = Vec::new();
    if delayed_acks > 0 {
        said.push(format!(
            "{delayed_acks} lone segments were acknowledged late (delayed ACK), by {delayed_acks_s:.3} s together, and new data waited"
        ));
    }
    if window_probes > 0 {
        said.push(format!("{window_probes} probes of a closed window"));
    }
    if keep_alives > 0 {
        said.push(format!("{keep_alives} keep-alives"));
    }
    said
}

/// What a SYN told of its stack, and by what.
fn stack_seen(stack: &StackSeen) -> String {
    let StackSeen { options, window, ttl, is_answer, family, .. } = stack;
    let like = match family {
        Some(family) => format!("like {}, by", family.name()),
        None => "unknown, by".to_owned(),
    };
    let syn = if *is_answer { "SYN/ACK" } else { "SYN" };
    let scale = stack
        .window_scale
        .map_or_else(|| "not scaled".to_owned(), |shift| format!("scaled by {}", 1_u32 << shift));
    format!(
        "{like} its {syn}: {options}; time to live {ttl}, {} routers away; window {window} B, {scale}",
        stack.hops()
    )
}

/// What both sides tell together: terms, and what is said of each.
pub fn both_sides_facts(both: &BothSides) -> Vec<(&'static str, String)> {
    let BothSides { receiver_ahead_s, receiver_fast_ppm, forward, back, sent_again, needless, is_cut } = both;
    let delay = |way: &OneWay| {
        let [median, most, all] = way.above_s.map(ms);
        format!("{} (least); above it {median} (median), {most} (95 %), {all} (99 %)", ms(way.least_s))
    };
    let drift = receiver_fast_ppm.map_or_else(String::new, |ppm| {
        let way = if ppm < 0.0 { "slower" } else { "faster" };
        format!(" at first and runs {:.1} millionths {way}", ppm.abs())
    });
    let cut = if *is_cut { "; of the first packets alone, as many as are held" } else { "" };
    vec![
        (
            "clocks",
            format!(
                "the receiver's is {receiver_ahead_s:.6} s ahead{drift}, where the shortest delays are equal both ways{cut}"
            ),
        ),
        ("forward", delay(forward)),
        (
            "",
            format!(
                "{} of {} packets with data lost on the way ({} B), {} reordered",
                forward.lost, forward.packets, forward.bytes_lost, forward.reordered
            ),
        ),
        ("back", delay(back)),
        ("", format!("{} of {} acknowledgments lost, {} reordered", back.lost, back.packets, back.reordered)),
        (
            "sent again",
            format!("{sent_again} packets, {needless} of them for nothing: their data had arrived"),
        ),
    ]
}

/// Connections that were watched have none.
fn has_frames(connection: &ConnectionReport) -> bool {
    connection.frames.1 > 0
}

/// A display filter of Wireshark's for the connection.
fn display_filter(connection: &ConnectionReport) -> String {
    let (one, other) = (connection.sender, connection.receiver);
    let family = if one.is_ipv4() { "ip" } else { "ipv6" };
    format!(
        "{family}.addr == {} && tcp.port == {} && {family}.addr == {} && tcp.port == {}",
        one.ip(),
        one.port(),
        other.ip(),
        other.port()
    )
}
