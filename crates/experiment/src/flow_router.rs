//! The configuration file of an explicit-rate router.

use crate::error::{ExperimentError, parse_toml};
use crate::reader::Reader;
use farpath_elements::RouterLines;
use std::net::SocketAddr;

/// What a router is told: its interfaces, and the keys of a `flow-router`.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterConfig {
    /// The interface that packets come in by which go forward.
    pub inside: String,
    /// The one by which they leave.
    pub outside: String,
    /// Where statistics are served.
    pub statistics: Option<SocketAddr>,
    /// What it grants, and its lines.
    pub lines: RouterLines,
}

impl RouterConfig {
    /// Reads the text of a configuration file: interfaces, and the keys of a `flow-router`.
    ///
    /// # Errors
    /// Text that is not TOML, keys that do not exist or are missing, values that are refused.
    pub fn parse(text: &str, origin: &str) -> Result<RouterConfig, ExperimentError> {
        let table = parse_toml(origin, text)?;
        Reader::table(origin, "", &table, |reader| {
            let inside: String = reader.required("inside")?;
            let outside: String = reader.required("outside")?;
            if inside == outside {
                return Err(reader
                    .location_of("outside")
                    .refuse(format!("expected another interface than `inside`, {inside}")));
            }
            let statistics: Option<String> = reader.optional("statistics")?;
            let statistics = statistics.map(|text| {
                let expected =
                    format!("expected an address and a port such as `127.0.0.1:9439`, found `{text}`");
                text.parse().map_err(|_| reader.location_of("statistics").refuse(expected))
            });
            let statistics = statistics.transpose()?;
            for key in ["blind", "changes"] {
                if reader.has(key) {
                    return Err(reader
                        .location_of(key)
                        .refuse("it is for experiments; a router is told with SIGHUP"));
                }
            }
            if !reader.has("queue") {
                return Err(reader
                    .location_of("queue")
                    .refuse("expected how much may wait for each line, such as `1000 packets`"));
            }
            let lines = RouterLines::from_keys(reader)?;
            Ok(RouterConfig { inside, outside, statistics, lines })
        })
    }
}
