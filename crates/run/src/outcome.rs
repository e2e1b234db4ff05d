//! How a flow ended. It is data, not an error.

words! {
    /// How a flow ended.
    pub enum Outcome {
        /// The receiving application has read every byte.
        Completed = "completed",
        /// No answer to any SYN in time.
        ConnectTimedOut = "connect_timed_out",
        /// The connection was given up after it was opened: retries ran out, or the peer reset it.
        Aborted = "aborted",
        /// Not over when the experiment's horizon came.
        Horizon = "horizon",
        /// The run was in real time and the machine could not keep it: see its [`Grade`](crate::Grade). Nothing of it is
        /// known.
        Void = "void",
        /// The run had used up its budget, of events or of packets, before the flow was over: it repeated itself, and the detail
        /// says what.
        Stuck = "stuck",
        /// The engine does not say: the scenario is outside of what its models hold for, and the detail says why.
        Unknown = "unknown",
    }
}
