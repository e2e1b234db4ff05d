//! The two engines in virtual time: closed-form prediction and packet-level simulation
