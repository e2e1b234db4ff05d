//! `[explicit_rate]` of a stack.

use super::CongestionControlKind;
use super::schema::{section, words};
use farpath_units::Rate;

section! {
    /// Explicit rate (TIA-1039), for a driver between this end and IP. TCP itself looks at the fallback only.
    struct ExplicitRateConfig [explicit_rate] {
        /// The most that is asked for, bits of IP packets; `none` has no driver.
        wanted or "none": Option<Rate> = None => {
            from "TIA-1039";
        }
        /// What kind of rate `wanted` is.
        kind as "type": RateKind = RateKind::Available => {
            from "TIA-1039's TP";
        }
        /// Of a composite rate, what is to be guaranteed beside `wanted`, which is shared.
        guaranteed or "none": Option<Rate> = None => {
            from "TIA-1039's GR";
        }
        /// Who loses a guarantee last: 0 to 63.
        preemption: u8 = 32 => {
            from "TIA-1039's PP";
            within 0..=63;
            workable 0..=63;
        }
        /// Whose packets of a guarantee wait least: 0 to 63.
        delay: u8 = 32 => {
            from "TIA-1039's DP";
            within 0..=63;
            workable 0..=63;
        }
        /// So many routers must have marked a grant for it to be one. Of more than one it is asked in version 2, whose M counts them: with one
        /// edge that is blind, both would be two.
        routers: u8 = 1 => {
            from "ours, for the paper's proof that both edges have seen a request";
            within 1..=15;
            workable 1..=15;
        }
        /// Loss above which a grant is given up, in packets of a thousand.
        loss_limit_per_mille: u32 = 100 => {
            from r#"Roberts 2006: "typically 10 %""#;
            within 0..=1000;
            workable 0..=1000;
        }
        /// The controller that goes on where a grant was given up. Where there never was one it is `congestion.control`.
        fallback: CongestionControlKind = CongestionControlKind::Bbr => {
            from "";
        }
        /// The end's buffers are as large as the rate needs over the path while what is lost is repaired; where it asks for one.
        size_buffers: bool = true => {
            from "[formulas](models/explicit-rate.md)";
        }
        /// The receive buffer of the peer counts as its window from the first segment on: a SYN/ACK cannot say more than 64 kB.
        early_window: bool = false => {
            from "";
        }
    }
}

words! {
    /// What is asked for: TIA-1039's types of rate.
    RateKind {
        /// As much as there is, fairly shared.
        Available = "available",
        /// Something guaranteed, and an Available Rate on top of it.
        Composite = "composite",
        /// Guaranteed while it is used.
        Maximum = "maximum",
        /// Guaranteed until it is closed.
        Guaranteed = "guaranteed",
    }
}
