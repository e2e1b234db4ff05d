//! A TCP endpoint that owns no socket, no thread and no clock
