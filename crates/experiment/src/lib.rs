//! Experiment files: TOML in, checked types out.
//!
//! An experiment is data: a path, two stacks and a transfer, with units in it. [`Experiment::load`]
//! reads a file, puts `--set` overrides and every combination of its sweep into it, and checks all of
//! that before anything runs: what comes out are [`Point`]s with a [`Scenario`] each, and nothing that
//! an engine has to check again.
//!
//! ```
//! use farpath_experiment::Experiment;
//!
//! let text = r#"
//!     title = "One file over a noisy channel"
//!     path = "noisy-channel"
//!     [transfer]
//!     size = "1 MB"
//!     [sweep]
//!     "path.loss" = ["0 %", "1 %"]
//! "#;
//! let experiment = Experiment::parse(text, "example.toml", &["seeds=5".parse()?])?;
//! assert_eq!(experiment.points().len(), 2);
//! assert_eq!(experiment.point(1).swept, [("path.loss".to_owned(), "1 %".to_owned())]);
//! assert_eq!(experiment.point(1).scenario.seeds, 5);
//!
//! let error = Experiment::parse(&text.replace("size", "sise"), "example.toml", &[]).unwrap_err();
//! assert_eq!(error.to_string(), "example.toml: transfer.sise: unknown key; did you mean `size`?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `experiment`, `scenario` | the file as a whole; one point of it |
//! | `flows`, `stream` | what is transferred: files, and streams of messages |
//! | `element`, `flow_router`, `radio`, `stack`, `parameters` | elements of a path; stacks, and their parameters by name |
//! | `emulate`, `linux` | how the running kernel is used; what it is told beside a stack's parameters |
//! | `host` | scheduling delay of simulated hosts |
//! | `sweep`, `range`, `design`, `published` | the points, listed, by steps or drawn; what a paper printed for them |
//! | `document` | values put into a document by key, before it is read |
//! | [`import`] | command lines of other emulators as elements of a path |
//! | `rewrite` | a file with changes written into it, its comments kept |
//! | `reader` | the checked walk: every key is read or refused |
//! | `library` | shipped stacks, paths and experiments |
//! | `places`, `protocols` | bodies and media; timers of protocols, for radii |
//! | `quick_path` | an experiment from a few numbers |
//! | `warnings` | what is allowed and probably not meant |

mod budget;
mod design;
mod document;
mod element;
mod emulate;
mod error;
mod experiment;
mod flow_router;
mod flows;
mod host;
mod implementation;
pub mod import;
mod library;
mod linux;
mod numbers;
mod parameters;
mod places;
mod programs;
mod protocols;
mod published;
mod quick_path;
mod range;
mod reader;
mod refused;
mod rewrite;
mod scenario;
mod stack;
mod stream;
mod sweep;
mod warnings;

pub use budget::RunBudget;
pub use document::{Override, ParseOverrideError};
pub use element::MAX_ELEMENTS;
pub use emulate::{Backend, EmulateOptions, EmulationClock, IpVersion};
pub use error::{ExperimentError, Location, MAX_VALUES, Suggestion};
pub use experiment::{Experiment, MAX_RUNS, Point};
pub use flow_router::RouterConfig;
pub use flows::{FlowSpec, MAX_FLOWS, Opener, Transport};
pub use host::HostOptions;
pub use implementation::{ForeignHost, Implementation, MAX_FOREIGN_FLOWS, TOLD, is_host_name};
pub use library::{ShippedFile, shipped_experiments, shipped_paths, shipped_stacks};
pub use linux::{BpfObject, LinuxSettings};
pub use numbers::{Kind, numbers};
pub use parameters::{to_toml, value_to_toml};
pub use places::{Body, Distance, Medium, bodies, body, media, medium};
pub use programs::{ListeningPort, MAX_PROGRAMS, ParsePortError, ProgramSpec, host_name};
pub use protocols::{Beyond, MAX_TIMERS, Protocol, ProtocolTimer, shipped_protocols};
pub use published::{Published, PublishedColumn, PublishedValue};
pub use quick_path::{QUICK_PATH_STACK, QuickPath};
pub use range::MAX_POINTS;
pub use refused::{NoControl, NoLifetime, OverMemory, TcpOnly};
pub use scenario::{KernelOnly, Output, Scenario};
pub use stack::{MAX_BASES, Stack};
pub use stream::{MAX_MESSAGES, Stream};
pub use sweep::{Axis, MAX_SWEPT};
pub use warnings::{Warning, base_rtt, base_rtt_of, lateness_budget, warnings};
