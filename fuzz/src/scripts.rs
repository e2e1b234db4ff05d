//! Packet scripts: read or refused, and played to an end; and packets that a stack behind a device sends.

use farpath_script::{Comparison, Simulated, bytes, parse, play, update};
use farpath_tcp::Config;

/// Packets and timers of one input.
const STEPS: u64 = 20_000;

/// A packet script, or a packet.
pub fn scripts(data: &[u8]) {
    if let Some(packet) = bytes::decode(data) {
        assert!(usize::from(packet.len) < data.len(), "{packet:?} has more than its bytes");
    }
    let Ok(text) = core::str::from_utf8(data) else { return };
    let script = match parse(text) {
        Ok(script) => script,
        Err(error) => {
            let lines = text.split('\n').count();
            let line = usize::try_from(error.place.line).expect("small");
            assert!((1..=lines).contains(&line), "{error} is not within {lines} lines");
            return;
        }
    };
    let mut machine = Simulated::with_limit(&Config::default(), STEPS);
    let verdict = play(&script, &mut machine, &Comparison { tolerance: None });
    if let Some(anew) = update(text, &script, &verdict) {
        parse(&anew).unwrap_or_else(|error| panic!("{error}\n{anew}"));
    }
}
