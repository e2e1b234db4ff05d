//! Published closed forms for TCP's performance, each with its source and its domain
