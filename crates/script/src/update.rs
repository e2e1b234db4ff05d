//! A script written anew with what came.

use crate::player::{Outcome, Verdict};
use crate::syntax::{Action, BodySpec, PacketSpec, Script, Time, Way};
use farpath_units::Duration;

/// The script with the packet that came in place of the one that was expected; `None` where what differs is no such packet.
pub fn update(text: &str, script: &Script, verdict: &Verdict) -> Option<String> {
    let Outcome::Failed(fault) = &verdict.outcome else { return None };
    let number = script.events.iter().position(|event| event.place == fault.place)?;
    let event = &script.events[number];
    let Action::Packet(PacketSpec { way: Way::Out, body: BodySpec::Tcp(spec), .. }) = &event.action else {
        return None;
    };
    let came = verdict.came.get(&number)?;
    // What an option list is not asked for stays so, and so does a window that was not asked for.
    let mut packet = came.text.clone();
    if spec.options.is_none() {
        packet = format!("{} <...>", packet.split(" <").next()?);
    }
    if spec.window.is_none() {
        let (before, rest) = packet.split_once(" win ")?;
        let rest = rest.split_once(' ').map(|(_, rest)| format!(" {rest}")).unwrap_or_default();
        packet = format!("{before}{rest}");
    }
    let time = match event.time {
        Time::Relative(_) | Time::RelativeRange(..) => format!("+{}", number_of_seconds(came.after)),
        Time::Any => "*".to_owned(),
        // Where absolute times are written they are kept: the event before it is theirs.
        Time::Absolute(at) => number_of_seconds(at),
        Time::AbsoluteRange(from, to) => format!("{}~{}", number_of_seconds(from), number_of_seconds(to)),
    };
    let (before, rest) = (text.get(..event.span.start)?, text.get(event.span.end..)?);
    Some(format!("{before}{time} > {packet}{rest}"))
}

fn number_of_seconds(time: Duration) -> String {
    let text = crate::player::seconds(time);
    let text = text.trim_end_matches(" s");
    text.strip_suffix(".0").unwrap_or(text).to_owned()
}
