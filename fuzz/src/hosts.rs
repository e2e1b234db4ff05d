//! What a program says that is a host of a path.

use farpath_foreign::protocol::AnswerReader;
use farpath_units::Instant;

const MTU: u16 = 1500;
const SIZE: u64 = 100_000;

/// The first byte says how much has been read and whether it is the first answer; the rest are lines, as from a pipe.
pub fn hosts(data: &[u8]) {
    let Some((&first, bytes)) = data.split_first() else { return };
    let (read, wants_name) = (u64::from(first >> 1), first & 1 == 1);
    let now = Instant::from_nanos(1000);
    let mut reader = AnswerReader::new(now, MTU, (read, SIZE), wants_name);
    for line in bytes.split(|byte| *byte == b'\n') {
        match reader.line(line) {
            Ok(false) => {}
            Ok(true) => {
                let (answer, name) = reader.finish();
                assert!(answer.packets.iter().all(|packet| (1..=usize::from(MTU)).contains(&packet.len())));
                assert!(answer.read.is_none_or(|found| (read..=SIZE).contains(&found)));
                assert!(answer.next_due.is_none_or(|due| due > now), "time goes on");
                assert_eq!(name.is_some(), wants_name);
                return;
            }
            Err(error) => {
                // It is shown on a terminal.
                let said = error.to_string();
                assert!(said.len() < 1000 && !said.chars().any(char::is_control), "{said:?}");
                return;
            }
        }
    }
}
