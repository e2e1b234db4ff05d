//! Path elements that own no clock: delay, link, loss, reordering, duplication
