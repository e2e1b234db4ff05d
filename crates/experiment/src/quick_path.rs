//! An experiment from a few numbers: what a command line says of somebody's own path.

use farpath_tcp::HEADERS;
use farpath_units::{Bytes, Duration, Probability, Rate};

/// The stack of an experiment that is given by numbers alone.
pub const QUICK_PATH_STACK: &str = "linux-6";

/// How a value is marked that is a default of ours.
pub(crate) const NOT_GIVEN: &str = "# not given";

/// A path and a transfer in a few numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct QuickPath {
    /// Propagation, each way.
    pub delay: Duration,
    /// Of the one link, both ways.
    pub rate: Rate,
    /// Independent loss per packet, each way.
    pub loss: Probability,
    /// Of the file.
    pub size: Bytes,
    /// Of both ends; [`QUICK_PATH_STACK`] where it is not given.
    pub stack: Option<String>,
    /// Receive buffer; the stack's where it is not given.
    pub window: Option<Bytes>,
}

/// IP length of a full packet, and what a queue of one bandwidth-delay product holds at the least: ten of them.
const PACKET: Bytes = Bytes(1500);
const LEAST_QUEUE: Bytes = Bytes(15_000);

impl QuickPath {
    /// One bandwidth-delay product: what the link sends in a round trip.
    pub fn queue(&self) -> Bytes {
        let sending = self.rate.time_to_send(PACKET) + self.rate.time_to_send(HEADERS);
        let round = (self.delay + self.delay + sending).as_nanos();
        let bits = u128::from(self.rate.bit_per_s()) * u128::from(round) / 1_000_000_000;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX)).max(LEAST_QUEUE)
    }

    /// The experiment file that it stands for, what was not given included.
    pub fn to_toml(&self) -> String {
        let QuickPath { delay, rate, loss, size, stack, window } = self;
        let queue = self.queue();
        let (lossy, seeds) = match *loss == Probability::ZERO {
            true => (String::new(), "1                    # without loss nothing is left to chance"),
            false => (format!(", {loss} loss"), "20"),
        };
        let given = if stack.is_some() { String::new() } else { format!("          {NOT_GIVEN}") };
        let stack = quoted(stack.as_deref().unwrap_or(QUICK_PATH_STACK));
        let title = quoted(&format!("{size} over {rate}, {delay} each way{lossy}"));
        let mut text = format!(
            r#"title = {title}
seeds = {seeds}
horizon = "30 d"             {NOT_GIVEN}: long enough to end by itself

[[path]]
element = "link"
rate = "{rate}"
queue = "{queue}"            {NOT_GIVEN}: one bandwidth-delay product, and ten packets at least

[[path]]
element = "loss"
rate = "{loss}"              # each way

[[path]]
element = "delay"
delay = "{delay}"            # propagation, each way

[sender]
stack = {stack}{given}

[receiver]
stack = {stack}
"#
        );
        if let Some(window) = window {
            text += &format!("receive.buffer = \"{window}\"\n");
            if *window > Bytes(65_535) {
                text += "send.window_scaling = true   # a window over 65 535 B takes it, at both ends\n";
                text = text.replacen("\n\n[receiver]", "\nsend.window_scaling = true\n\n[receiver]", 1);
            }
        }
        text + &format!(
            "\n[transfer]\nsize = \"{size}\"\nopener = \"receiver\"        {NOT_GIVEN}: a download\n"
        )
    }
}

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use farpath_elements::{ElementKind, Link, QueueLimit};

    fn quick_path() -> QuickPath {
        QuickPath {
            delay: Duration::from_millis(300),
            rate: Rate::from_bit_per_s(10_000_000).expect("not zero"),
            loss: Probability::new(0.01).expect("below 1"),
            size: Bytes(100_000_000),
            stack: None,
            window: None,
        }
    }

    fn scenario(quick_path: &QuickPath) -> crate::Scenario {
        let text = quick_path.to_toml();
        let experiment =
            Experiment::parse(&text, "quick_path", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        experiment.point(0).scenario.clone()
    }

    #[test]
    fn the_queue_is_one_bandwidth_delay_product() {
        // 10 Mbit/s for 600 ms, and for a packet and its ACK.
        assert_eq!(quick_path().queue(), Bytes(751_540));
        assert_eq!(QuickPath { delay: Duration::ZERO, ..quick_path() }.queue(), LEAST_QUEUE);
        let ElementKind::Link(Link { queue, .. }) = &scenario(&quick_path()).path[0].kind else {
            panic!("not the link")
        };
        assert_eq!(queue.forward, QueueLimit::Bytes(Bytes(751_540)));
    }

    #[test]
    fn what_is_not_given_is_the_stack_and_its_window() {
        let plain = scenario(&quick_path());
        assert_eq!(
            (plain.sender.name.as_str(), plain.receiver.name.as_str()),
            (QUICK_PATH_STACK, QUICK_PATH_STACK)
        );
        assert!(plain.receiver.config.send.window_scaling, "hosts of today scale their windows");
        assert_eq!(plain.warnings, [""; 0]);
    }

    #[test]
    fn what_is_left_to_chance_is_run_more_than_once() {
        let seeds = |loss| {
            let quick_path = QuickPath { loss, ..quick_path() };
            Experiment::parse(&quick_path.to_toml(), "quick_path", &[]).expect("it can be read").seeds
        };
        let some = seeds(Probability::new(0.01).expect("below 1"));
        assert!(seeds(Probability::ZERO) == 1 && some > 1, "{some}");
    }

    #[test]
    fn a_large_window_is_scaled_and_a_small_one_is_not() {
        for (window, scaled) in [(Bytes(65_535), false), (Bytes(65_536), true), (Bytes(4_000_000), true)] {
            let given = scenario(&QuickPath {
                window: Some(window),
                stack: Some("rfc-5681".to_owned()),
                ..quick_path()
            });
            assert_eq!(given.receiver.config.receive.buffer, window);
            let both = [&given.sender, &given.receiver].map(|end| end.config.send.window_scaling);
            assert_eq!(both, [scaled; 2], "{window}");
            assert_eq!(given.warnings, [""; 0]);
        }
        let other = scenario(&QuickPath { stack: Some("bsd-1996".to_owned()), ..quick_path() });
        assert_eq!(other.sender.name, "bsd-1996");
    }
}
