//! What an experiment asks for and a real network does not give.

use farpath_experiment::{ForeignHost, NoControl, NoLifetime, Point, TcpOnly};
use farpath_units::Bytes;

/// Why a point is not measured.
#[derive(Debug, thiserror::Error)]
pub enum NotMeasured {
    /// Its streams are over UDP.
    #[error(transparent)]
    TcpOnly(#[from] TcpOnly),
    /// A TCP of somebody else's stands at an end.
    #[error(transparent)]
    ForeignHost(#[from] ForeignHost),
    /// The peer answers no messages.
    #[error(
        "flow {0}: `reply`: answers to messages are simulated and emulated, and not measured over a real network"
    )]
    NoAnswers(usize),
    /// Its programs send each message.
    #[error(transparent)]
    NoLifetime(#[from] NoLifetime),
    /// Nothing is loaded into kernels that others run.
    #[error(
        "{key}: a measurement loads nothing into the kernels of its two hosts: expected `linux.congestion_control` with the name of one \
         that is registered there, found `{file}`"
    )]
    BpfOfAnother {
        /// What asks for it.
        key: String,
        /// The object file.
        file: String,
    },
    /// No Linux has the congestion controller.
    #[error(transparent)]
    NoControl(#[from] NoControl),
}

/// Whether this point can be measured over a real network at all. What its two kernels lack is a note of the run.
///
/// # Errors
/// Streams over UDP, or whose messages are answered; a congestion controller that no Linux has, or that would have to be loaded.
pub fn can_be_measured(point: &Point) -> Result<(), NotMeasured> {
    let scenario = &point.scenario;
    scenario.needs_tcp_alone("a measurement")?;
    scenario.needs_no_foreign_host("measure")?;
    if let Some(flow) = scenario.flows.iter().position(|flow| flow.reply() > Bytes::ZERO) {
        return Err(NotMeasured::NoAnswers(flow));
    }
    scenario.sends_all_messages()?;
    if let Some((key, object)) = scenario.bpf().next() {
        return Err(NotMeasured::BpfOfAnother { key, file: object.file.clone() });
    }
    for (end, stack) in [("sender", &scenario.sender), ("receiver", &scenario.receiver)] {
        let kind = stack.config.congestion.control;
        if stack.linux.congestion_control.is_none() && kind.linux_name().is_none() {
            let (key, asked) = (format!("{end}.congestion.control"), kind.name().to_owned());
            return Err(NoControl { key, asked, kernel: "Linux".to_owned() }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;

    fn refused(changes: &[&str]) -> String {
        let text = "title = \"T\"\npath = [{ element = \"delay\", delay = \"1 ms\" }]\n[transfer]\n\
                    message = \"1 kB\"\nrate = \"1 Mbit/s\"\nduration = \"1 s\"\n";
        let changes: Vec<_> = changes.iter().map(|change| change.parse().expect("a change")).collect();
        let experiment = Experiment::parse(text, "t.toml", &changes).expect("sound");
        can_be_measured(&experiment.point(0)).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_controller_that_no_linux_has_is_refused() {
        let said = refused(&["sender.congestion.control=bbr3"]);
        assert!(said.contains("found `bbr3`"), "{said}");
    }

    #[test]
    fn messages_that_would_be_left_out_are_refused() {
        let said = refused(&["transfer.lifetime=100 ms"]);
        assert!(said.starts_with("flow 0: `lifetime`: "), "{said}");
    }
}
