//! Values of `tcp_info` of a simulated connection, as assertions read them.

use crate::code::Value;
use farpath_tcp::Connection;
use farpath_units::Instant;

/// A field by the name `tcpi_...`.
pub fn value(connection: &Connection, now: Instant, name: &str) -> Option<Value> {
    let name = name.strip_prefix("tcpi_")?;
    connection.information(now, name).map(|value| Value::Int(value.into()))
}
