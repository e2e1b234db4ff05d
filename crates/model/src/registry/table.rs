//! The formulas by name.

use super::read::{
    cardwell, cycle, isolated_loss, listening, loss, lossless, lossy_opening, ltp_block, opening, path, pftk,
    phases, poll_cycle,
};
use super::{Argument, Formula, explicit_rate};
use crate::mathis::Mathis;
use crate::overhead::FullLink;
use crate::recovery::{Growth, IsolatedDrop};
use crate::retransmissions::PacketRate;
use crate::slow_start::SlowStart;
use crate::window_limit::WindowLimit;
use crate::{ber, ltp, mathis, overhead, radius, recovery, stream};
use farpath_units::Probability;

const HIGH_BER: &str = "Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254";
const PADHYE: &str = "Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998";
const CARDWELL: &str = "Cardwell, Savage, Anderson, INFOCOM 2000";
const MATHIS: &str = "Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997";
const RADIUS: &str = "Wood, Peoples, Parr, Scotney, Moore, IWSSC 2007";
const KERSHAW: &str = "Kershaw, Hughes-Jones 2007";
const ARITHMETIC: &str = "arithmetic";

const fn needed(name: &'static str, unit: &'static str) -> Argument {
    Argument { name, unit, default: None }
}

const fn or(name: &'static str, unit: &'static str, default: f64) -> Argument {
    Argument { name, unit, default: Some(default) }
}

const A: Argument = needed("a", "number");
const B: Argument = needed("b", "number");
const SIZE: Argument = needed("size", "B");
const MSS: Argument = or("mss", "B", 1460.0);
const RTT: Argument = needed("rtt", "s");
const RWND: Argument = needed("rwnd", "B");
const ANY_RWND: Argument = or("rwnd", "B, infinity for none", f64::INFINITY);
const RATE: Argument = needed("rate", "bit/s");
const P: Argument = needed("p", "fraction");
const T0: Argument = needed("t0", "s");
const ACK_EVERY: Argument = or("ack_every", "segments per ACK", 2.0);
const IW: Argument = or("iw", "segments", 2.0);
const BER: Argument = needed("ber", "errors per bit");
const PACKETS: Argument = needed("packets", "packets");

/// A path of equal links, as the registry describes it: `owd` is the propagation of all of them together.
const LINK_ARGUMENTS: [Argument; 7] = [
    RATE,
    or("links", "links in a row", 1.0),
    needed("owd", "s, propagation one way"),
    or("link_overhead", "B per packet", 38.0),
    or("min_payload", "B, smaller packets are padded", 46.0),
    or("headers", "B of IP and TCP", 40.0),
    or("delayed_ack_timeout", "s", 0.2),
];

/// The schedule of an end's SYNs.
const SYN_ARGUMENTS: [Argument; 7] = [
    needed("initial", "s, first timeout"),
    or("attempts", "SYNs, infinity for no end", f64::INFINITY),
    or("linear", "timeouts that do not double", 0.0),
    or("max", "s, longest timeout", f64::INFINITY),
    or("tick", "s", 0.0),
    or("wheel", "1 if the tick is a jiffy of Linux's timer wheel", 0.0),
    or("within", "s, ends the opening", f64::INFINITY),
];
const INDEX: Argument = or("refractive_index", "of the medium", 1.0);

fn cost(cost: recovery::Cost) -> Vec<f64> {
    vec![cost.time.as_secs_f64(), cost.rounds_lost, cost.missing, cost.sent, cost.rounds]
}

/// One entry; the body reads its arguments from `given`, an [`crate::InputError`] turns into this formula's error.
macro_rules! formula {
    ($name:literal, $summary:literal, $source:expr, $arguments:expr, $results:expr, |$given:ident| $body:expr) => {
        Formula {
            name: $name,
            summary: $summary,
            source: $source,
            arguments: $arguments,
            results: $results,
            run: |$given| $body,
        }
    };
}

/// Unwraps an estimate of a crate formula inside a table entry.
macro_rules! of {
    ($given:ident, $estimate:expr) => {
        $estimate.map_err(|error| $given.input(error))?.value
    };
}

/// A formula's own arguments, then those of a path of equal links.
macro_rules! with_links {
    ($($argument:expr),+) => {
        [
            $($argument,)+
            LINK_ARGUMENTS[0], LINK_ARGUMENTS[1], LINK_ARGUMENTS[2], LINK_ARGUMENTS[3], LINK_ARGUMENTS[4],
            LINK_ARGUMENTS[5], LINK_ARGUMENTS[6],
        ]
    };
}

/// A hop of packet radio, and what is sent over it.
const RADIO_ARGUMENTS: [Argument; 9] = [
    RATE,
    needed("rx_to_tx", "s"),
    needed("tx_to_rx", "s"),
    needed("poll", "B, and its answer"),
    needed("link_header", "B per frame"),
    needed("link_ack", "B"),
    needed("burst", "frames"),
    or("gap", "s, the longest wait after an exchange", 0.0),
    needed("payload", "B per packet"),
];

/// The arguments of a schedule of SYNs, then a formula's own.
macro_rules! with_syns {
    ($($argument:expr),+) => {
        [
            SYN_ARGUMENTS[0], SYN_ARGUMENTS[1], SYN_ARGUMENTS[2], SYN_ARGUMENTS[3], SYN_ARGUMENTS[4],
            SYN_ARGUMENTS[5], SYN_ARGUMENTS[6],
            $($argument,)+
        ]
    };
}

/// The arguments of a hop of packet radio, then a formula's own.
macro_rules! with_radio {
    ($($argument:expr),+) => {
        [
            RADIO_ARGUMENTS[0], RADIO_ARGUMENTS[1], RADIO_ARGUMENTS[2], RADIO_ARGUMENTS[3], RADIO_ARGUMENTS[4],
            RADIO_ARGUMENTS[5], RADIO_ARGUMENTS[6], RADIO_ARGUMENTS[7], RADIO_ARGUMENTS[8],
            $($argument,)+
        ]
    };
}

pub(super) const FORMULAS: &[Formula] = &[
    formula!(
        "sum",
        "a + b + c + d",
        ARITHMETIC,
        &[A, B, or("c", "number", 0.0), or("d", "number", 0.0)],
        &["a + b + c + d"],
        |g| { Ok(vec![g.number("a") + g.number("b") + g.number("c") + g.number("d")]) }
    ),
    formula!("difference", "a - b", ARITHMETIC, &[A, B], &["a - b"], |g| Ok(vec![
        g.number("a") - g.number("b")
    ])),
    formula!("product", "a x b x c", ARITHMETIC, &[A, B, or("c", "number", 1.0)], &["a b c"], |g| {
        Ok(vec![g.number("a") * g.number("b") * g.number("c")])
    }),
    formula!("ratio", "a / b", ARITHMETIC, &[A, B], &["a / b"], |g| Ok(vec![g.number("a") / g.number("b")])),
    formula!(
        "percent-change",
        "(to - from) / from, in per cent",
        ARITHMETIC,
        &[needed("from", "number"), needed("to", "number")],
        &["%"],
        |g| Ok(vec![(g.number("to") - g.number("from")) / g.number("from") * 100.0])
    ),
    formula!(
        "ber",
        "bit errors per bit",
        HIGH_BER,
        &[needed("errors", "bits"), needed("bits", "bits")],
        &["errors per bit"],
        |g| { Ok(vec![g.not_negative("errors")? / g.not_negative("bits")?]) }
    ),
    formula!(
        "per-exact",
        "packet error rate, 1 - (1 - BER)^bits",
        HIGH_BER,
        &[BER, SIZE],
        &["fraction"],
        |g| { Ok(vec![of!(g, ber::per(g.bytes("size")?, g.ber("ber")?)).fraction()]) }
    ),
    formula!(
        "per-linear",
        "bit errors per packet, BER x bits (Table 1)",
        HIGH_BER,
        &[BER, SIZE],
        &["bit errors"],
        |g| { Ok(vec![of!(g, ber::per_linear(g.bytes("size")?, g.ber("ber")?))]) }
    ),
    formula!(
        "packets-surviving",
        "share of packets without a bit error",
        HIGH_BER,
        &[BER, SIZE],
        &["fraction"],
        |g| { Ok(vec![1.0 - of!(g, ber::per(g.bytes("size")?, g.ber("ber")?)).fraction()]) }
    ),
    formula!(
        "ber-of-per",
        "bit error rate that loses this share of packets, exact",
        HIGH_BER,
        &[needed("per", "fraction"), SIZE],
        &["errors per bit"],
        |g| { Ok(vec![of!(g, ber::ber_of_per(g.bytes("size")?, g.probability("per")?)).errors_per_bit()]) }
    ),
    formula!(
        "ber-of-per-linear",
        "PER / bits (Table 3)",
        HIGH_BER,
        &[needed("per", "fraction"), SIZE],
        &["errors per bit"],
        |g| { Ok(vec![of!(g, ber::ber_of_per_linear(g.bytes("size")?, g.probability("per")?))]) }
    ),
    formula!(
        "packets-of-file",
        "size / mss; whole segments; payload of the last",
        HIGH_BER,
        &[SIZE, MSS],
        &["size / mss", "segments", "B in the last"],
        |g| {
            let packets = of!(g, overhead::packets_of_file(g.bytes("size")?, g.bytes("mss")?));
            Ok(vec![packets.quotient, packets.segments as f64, packets.last.0 as f64])
        }
    ),
    formula!(
        "ethernet-overhead",
        "preamble 8, header 14, FCS 4, gap 12, IP 20, TCP 20",
        HIGH_BER,
        &[],
        &["B per segment"],
        |_g| { Ok(vec![overhead::Overhead::ETHERNET.total().0 as f64]) }
    ),
    formula!(
        "maximum-throughput",
        "mss / (mss + overhead) x rate / 8 (Eq. 8-9)",
        HIGH_BER,
        &[MSS, or("overhead", "B", 78.0), RATE],
        &["B/s"],
        |g| {
            let link =
                FullLink { rate: g.rate("rate")?, mss: g.bytes("mss")?, overhead: g.bytes("overhead")? };
            Ok(vec![of!(g, link.maximum_throughput()).bytes_per_s()])
        }
    ),
    formula!("window-limit-throughput", "rwnd / rtt (Eq. 10-11)", HIGH_BER, &[RWND, RTT], &["B/s"], |g| {
        let limit = WindowLimit { rwnd: g.bytes("rwnd")?, rtt: g.seconds("rtt")? };
        Ok(vec![of!(g, limit.throughput()).bytes_per_s()])
    }),
    formula!(
        "window-limit-time",
        "size / (rwnd / rtt) (Eq. 12-13)",
        HIGH_BER,
        &[SIZE, RWND, RTT],
        &["s"],
        |g| {
            let limit = WindowLimit { rwnd: g.bytes("rwnd")?, rtt: g.seconds("rtt")? };
            Ok(vec![of!(g, limit.time(g.bytes("size")?)).as_secs_f64()])
        }
    ),
    formula!(
        "delayed-ack-cycle",
        "cycle of a full window with serialization behind the delayed ACK",
        "RFC 1122 section 4.2.3.2, store-and-forward arithmetic",
        &with_links!(RWND, MSS, ACK_EVERY),
        &["s per cycle", "segments per cycle", "B/s"],
        |g| {
            let path = path(g)?;
            let steady = of!(g, cycle(g, &path)?.steady());
            Ok(vec![steady.time.as_secs_f64(), steady.segments as f64, steady.throughput.bytes_per_s()])
        }
    ),
    formula!(
        "delayed-ack-time",
        "time of a file at the steady cycle, without handshake and slow start",
        "RFC 1122 section 4.2.3.2, store-and-forward arithmetic",
        &with_links!(SIZE, RWND, MSS, ACK_EVERY),
        &["s"],
        |g| {
            let path = path(g)?;
            Ok(vec![of!(g, cycle(g, &path)?.time(g.bytes("size")?)).as_secs_f64()])
        }
    ),
    formula!(
        "lossless-transfer",
        "a loss-free transfer walked exactly, handshake and slow start included",
        "RFC 5681 section 3.1, RFC 1122 section 4.2.3.2",
        &with_links!(
            SIZE,
            RWND,
            MSS,
            ACK_EVERY,
            IW,
            or("ssthresh", "B, infinity for none", f64::INFINITY),
            or("handshake", "round trips before data: 0, 1 or 1.5", 1.0)
        ),
        &["s until the last byte is received", "s until it is acknowledged", "s until established"],
        |g| lossless(g)
    ),
    formula!("mathis-constant", "C = sqrt(3 / (2 b))", MATHIS, &[ACK_EVERY], &["C"], |g| {
        Ok(vec![mathis::constant(g.count("ack_every")?).map_err(|error| g.input(error))?])
    }),
    formula!(
        "mathis-throughput",
        "mss / rtt x C / sqrt(p)",
        MATHIS,
        &[MSS, RTT, P, ACK_EVERY],
        &["B/s"],
        |g| {
            let flow = Mathis {
                mss: g.bytes("mss")?,
                rtt: g.seconds("rtt")?,
                loss_rate: g.probability("p")?,
                ack_every: g.count("ack_every")?,
                rwnd: None,
            };
            Ok(vec![of!(g, flow.throughput()).bytes_per_s()])
        }
    ),
    formula!(
        "pftk-send-rate",
        "PFTK full model, sent",
        PADHYE,
        &[MSS, RTT, T0, P, ACK_EVERY, ANY_RWND],
        &["B/s"],
        |g| { Ok(vec![of!(g, pftk(g)?.send_rate()).bytes_per_s()]) }
    ),
    formula!(
        "pftk-goodput",
        "PFTK full model, received",
        PADHYE,
        &[MSS, RTT, T0, P, ACK_EVERY, ANY_RWND],
        &["B/s"],
        |g| { Ok(vec![of!(g, pftk(g)?.goodput()).bytes_per_s()]) }
    ),
    formula!(
        "pftk-time",
        "size / PFTK goodput",
        PADHYE,
        &[SIZE, MSS, RTT, T0, P, ACK_EVERY, ANY_RWND],
        &["s"],
        |g| { Ok(vec![of!(g, pftk(g)?.goodput()).time_for(g.bytes("size")?).as_secs_f64()]) }
    ),
    formula!(
        "pftk-approximate",
        "PFTK approximate model",
        PADHYE,
        &[MSS, RTT, T0, P, ACK_EVERY, ANY_RWND],
        &["B/s"],
        |g| { Ok(vec![of!(g, pftk(g)?.approximate()).bytes_per_s()]) }
    ),
    formula!(
        "rfc5348-rate",
        "TFRC's throughput equation; rwnd is not used",
        "RFC 5348 section 3.1",
        &[MSS, RTT, T0, P, or("ack_every", "segments per ACK", 1.0), ANY_RWND],
        &["B/s"],
        |g| { Ok(vec![of!(g, pftk(g)?.rfc5348()).bytes_per_s()]) }
    ),
    formula!("expected-drops", "n p (Table 7)", HIGH_BER, &[PACKETS, P], &["packets"], |g| {
        Ok(vec![of!(g, loss(g, Probability::ZERO)?.expected()).drops])
    }),
    formula!(
        "expected-retransmissions",
        "n p / (1 - p): repeated until it arrives",
        HIGH_BER,
        &[PACKETS, P],
        &["packets"],
        |g| { Ok(vec![of!(g, loss(g, Probability::ZERO)?.expected()).retransmissions]) }
    ),
    formula!(
        "retransmissions-both-ways",
        "bounds with loss in both directions: no lost ACK, every lost ACK costs one",
        "geometric series",
        &[PACKETS, P, needed("p_reverse", "fraction")],
        &["packets at least", "packets at most"],
        |g| {
            let expected = of!(g, loss(g, g.probability("p_reverse")?)?.expected());
            Ok(vec![expected.retransmissions, expected.retransmissions_with_every_ack])
        }
    ),
    formula!(
        "packet-rate",
        "packets / time (Eq. 14)",
        HIGH_BER,
        &[PACKETS, needed("time", "s")],
        &["packets/s"],
        |g| {
            let rate = PacketRate { packets: g.not_negative("packets")?, time: g.seconds("time")? };
            Ok(vec![of!(g, rate.packets_per_s())])
        }
    ),
    formula!(
        "retransmission-time",
        "drops at the packet rate (Eq. 15)",
        HIGH_BER,
        &[PACKETS, needed("time", "s"), needed("drops", "packets")],
        &["s"],
        |g| {
            let rate = PacketRate { packets: g.not_negative("packets")?, time: g.seconds("time")? };
            Ok(vec![of!(g, rate.retransmission_time(g.not_negative("drops")?)).as_secs_f64()])
        }
    ),
    formula!(
        "recovery-table",
        "cwnd += mss^2 / cwnd, start included (Eq. 17, Table 9)",
        HIGH_BER,
        &[MSS, or("start", "B", 4380.0), or("steps", "steps", 14.0)],
        &["B, one per step"],
        |g| { Ok(of!(g, recovery::table(g.bytes("mss")?, g.bytes("start")?, g.count("steps")?))) }
    ),
    formula!(
        "recovery-lost-time",
        "time lost per drop by counting the segments of up to three phases; defaults are the paper's",
        HIGH_BER,
        &[
            or("window", "segments", 6.0),
            or("rtt", "s", 0.04),
            or("rounds_1", "rounds", 3.0),
            or("segments_1", "segments per round", 4.0),
            or("rounds_2", "rounds", 15.0),
            or("segments_2", "segments per round", 3.0),
            or("rounds_3", "rounds", 9.0),
            or("segments_3", "segments per round", 4.5),
        ],
        &["s", "rounds lost", "segments missing", "segments sent", "rounds"],
        |g| Ok(cost(of!(g, recovery::cost_of_phases(g.count("window")?, g.seconds("rtt")?, &phases(g)?))))
    ),
    formula!(
        "isolated-drop",
        "time lost by one drop, growth by one step per ACK",
        "RFC 5681",
        &[needed("window", "segments"), RTT, ACK_EVERY],
        &["s", "rounds lost", "segments missing", "segments sent", "rounds"],
        |g| {
            let growth = Growth::PerAck(g.count("ack_every")?);
            let drop = IsolatedDrop { window: g.count("window")?, round: g.seconds("rtt")?, growth };
            Ok(cost(of!(g, drop.cost())))
        }
    ),
    formula!(
        "isolated-drop-per-round",
        "time lost by one drop, growth by so many steps of Eq. 17 per round",
        HIGH_BER,
        &[needed("window", "segments"), RTT, or("growth", "steps per round", 1.0)],
        &["s", "rounds lost", "segments missing", "segments sent", "rounds"],
        |g| {
            let growth = Growth::PerRound(g.count("growth")?);
            let drop = IsolatedDrop { window: g.count("window")?, round: g.seconds("rtt")?, growth };
            Ok(cost(of!(g, drop.cost())))
        }
    ),
    formula!(
        "stream-loss",
        "what one loss costs a constant-rate stream (Eq. 2.1-2.3); an ack_factor of 0 stands for CUBIC",
        KERSHAW,
        &[
            RATE,
            RTT,
            or("mss", "B", 1448.0),
            or("ack_factor", "segments per step of the window", 2.0),
            or("limit", "B under way, infinity for none", f64::INFINITY),
        ],
        &[
            "s until recovered",
            "s late",
            "B delayed",
            "s until timely",
            "bit/s at the most",
            "B of send buffer",
            "B of bandwidth-delay product",
        ],
        |g| {
            let cost = of!(g, isolated_loss(g)?.cost());
            let stream::Cost { bdp, recovery, delayed, lateness, timely_again, peak_rate, send_buffer } =
                cost;
            Ok(vec![recovery, lateness, delayed, timely_again, peak_rate, send_buffer, bdp])
        }
    ),
    formula!(
        "late-telescopes",
        "what telescopes whose messages come too late cost a correlation",
        "pairs of telescopes, derived here",
        &[
            needed("telescopes", "telescopes"),
            or("late", "telescopes with late messages", 1.0),
            needed("share", "fraction of such a telescope's messages"),
        ],
        &["fraction of baselines' data lost", "fraction of sensitivity left"],
        |g| {
            let late = stream::LateTelescopes {
                telescopes: g.count("telescopes")?,
                late: g.count("late")?,
                share: g.probability("share")?,
            };
            let stream::Correlation { lost, sensitivity } = of!(g, late.correlation());
            Ok(vec![lost, sensitivity])
        }
    ),
    formula!(
        "ltp-block",
        "a block of red data over LTP, reports asked for at its end and after each repair",
        "RFC 5326, means derived here",
        &[
            SIZE,
            or("segment", "B of payload", 1400.0),
            or("overhead", "B of headers a segment", 40.0),
            RATE,
            RTT,
            or("p", "fraction of segments lost", 0.0),
            or("report_p", "fraction of reports lost", 0.0),
            or("margin", "s, of a checkpoint's timer beyond the round trip", 0.0),
        ],
        &["s until delivered", "rounds", "B sent"],
        |g| {
            let ltp::Delivery { time, rounds, sent } = of!(g, ltp_block(g)?.delivery());
            Ok(vec![time, rounds, sent])
        }
    ),
    formula!(
        "slow-start-rounds",
        "log of window / iw to the base 1 + 1/b",
        CARDWELL,
        &[IW, needed("window", "segments"), ACK_EVERY],
        &["rounds"],
        |g| {
            let start = SlowStart { initial_window: g.count("iw")?, ack_every: g.count("ack_every")? };
            Ok(vec![of!(g, start.rounds_to(g.count("window")?))])
        }
    ),
    formula!(
        "slow-start-time",
        "slow-start-rounds x rtt",
        CARDWELL,
        &[IW, needed("window", "segments"), ACK_EVERY, RTT],
        &["s"],
        |g| {
            let start = SlowStart { initial_window: g.count("iw")?, ack_every: g.count("ack_every")? };
            Ok(vec![of!(g, start.time_to(g.count("window")?, g.seconds("rtt")?)).as_secs_f64()])
        }
    ),
    formula!(
        "cardwell-latency",
        "expected latency of a finite transfer and its parts",
        CARDWELL,
        &[
            SIZE,
            MSS,
            RTT,
            T0,
            P,
            or("p_reverse", "fraction, SYN/ACK only", 0.0),
            or("syn_timeout", "s", 3.0),
            IW,
            ACK_EVERY,
            ANY_RWND,
            or("delayed_ack", "s, mean wait for the first", 0.0),
        ],
        &["s", "s handshake", "s slow start", "s first loss", "s congestion avoidance"],
        |g| cardwell(g)
    ),
    formula!(
        "syn-times",
        "when each SYN leaves, the first 64",
        RADIUS,
        &SYN_ARGUMENTS,
        &["s at the least, one per SYN"],
        |g| {
            let opening = opening(g)?;
            opening.check().map_err(|error| g.input(error))?;
            Ok(opening.syns(64).into_iter().map(|at| at.least).collect())
        }
    ),
    formula!(
        "protocol-radius",
        "both rules: round trip by which the last SYN has left, and by which the connection is abandoned",
        RADIUS,
        &SYN_ARGUMENTS,
        &[
            "s until the last SYN",
            "s until abandoned",
            "s one way, last SYN",
            "s one way, abandoned",
            "s until the last SYN at the most",
            "s until abandoned at the most",
        ],
        |g| {
            let opening = opening(g)?;
            opening.check().map_err(|error| g.input(error))?;
            let (last, abandoned) = (opening.last_syn().value, opening.abandoned().value);
            Ok(vec![
                last.least,
                abandoned.least,
                last.least / 2.0,
                abandoned.least / 2.0,
                last.most,
                abandoned.most,
            ])
        }
    ),
    formula!(
        "half-open-radius",
        "round trip by which the listener forgets the half-open connection, its SYN/ACKs stretched by SYNs that come again",
        RADIUS,
        &with_syns!(needed("synacks", "SYN/ACKs")),
        &["s", "s one way", "s at the most", "share that loses a race"],
        |g| {
            let forgets = of!(g, listening(g)?.gives_up(&opening(g)?));
            let lost = forgets.race.map_or(Some(0.0), |race| race.early_share).unwrap_or(f64::NAN);
            Ok(vec![forgets.span.least, forgets.span.least / 2.0, forgets.span.most, lost])
        }
    ),
    formula!(
        "poll-cycle",
        "one hop of packet radio: payload of a saturated station, and the exchange that carries a burst of it",
        "derived: docs/models/radio.md",
        &with_radio!(
            or("headers", "B of IP and UDP", 28.0),
            or("per", "share of frames that arrive damaged", 0.0)
        ),
        &["bit/s", "s per exchange"],
        |g| {
            let (cycle, payload, headers) = (poll_cycle(g)?, g.bytes("payload")?, g.bytes("headers")?);
            let saturated = of!(g, cycle.saturated(payload, headers, g.probability("per")?));
            Ok(vec![saturated.bit_per_s(), cycle.exchange(payload + headers)])
        }
    ),
    formula!(
        "poll-cycle-window",
        "one hop of packet radio: payload of a TCP whose window is one burst or less, acknowledged at once",
        "derived: docs/models/radio.md",
        &with_radio!(
            or("headers", "B of IP and TCP", 40.0),
            needed("segments", "of the window"),
            needed("around", "s of a round trip that are not the radio's")
        ),
        &["bit/s"],
        |g| {
            let (cycle, payload, headers) = (poll_cycle(g)?, g.bytes("payload")?, g.bytes("headers")?);
            let (segments, around) = (g.count("segments")?, g.seconds("around")?);
            Ok(vec![of!(g, cycle.window_of_one_burst(payload, headers, segments, around)).bit_per_s()])
        }
    ),
    formula!(
        "opening-under-loss",
        "how likely a connection opens to one end and to both, over a way that loses packets independently; without data",
        RADIUS,
        &with_syns!(needed("synacks", "SYN/ACKs"), RTT, P, or("p_reverse", "fraction, SYN/ACKs only", 0.0)),
        &["share open to the opener", "share open to both", "s until open to the opener", "share left out"],
        |g| {
            let connects = lossy_opening(g)?.value;
            let time = connects.time_to_open.unwrap_or(f64::INFINITY);
            Ok(vec![connects.opened, connects.usable, time, connects.left_out])
        }
    ),
    formula!(
        "light-distance",
        "distance that light covers one way in half a round trip",
        RADIUS,
        &[RTT, INDEX],
        &["km"],
        |g| Ok(vec![of!(g, radius::distance_km(g.number("rtt"), g.number("refractive_index")))])
    ),
    formula!(
        "light-time",
        "time of light over a distance, one way and back",
        RADIUS,
        &[needed("km", "km"), INDEX],
        &["s one way", "s round trip"],
        |g| {
            let rtt = of!(g, radius::round_trip(g.number("km"), g.number("refractive_index")));
            Ok(vec![rtt / 2.0, rtt])
        }
    ),
    explicit_rate::NORMAL,
    explicit_rate::EXPLICIT,
    explicit_rate::GAIN,
    explicit_rate::IDEAL,
    explicit_rate::IDEAL_GAIN,
    explicit_rate::SIGNALLING,
    explicit_rate::FINITE_FILE,
];
