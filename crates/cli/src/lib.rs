//! The farpath command
