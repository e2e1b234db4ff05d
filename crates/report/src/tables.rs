//! What tables say: engines side by side, the flows of a run, radii and the rest.

pub(crate) mod agreement;
mod air;
mod budget;
pub(crate) mod comparison;
mod diagnosis;
mod explanation;
pub(crate) mod flows;
pub(crate) mod grade;
pub(crate) mod numbers;
pub(crate) mod radius;
mod routers;

pub use agreement::agreement_text;
pub use comparison::{Caveat, ComparisonRow, ComparisonTable, Published};
pub use diagnosis::{both_sides_facts, connection_facts, limits_table, waits_table};
pub use explanation::{ExplanationView, explanation_markdown, explanation_text};
pub use flows::flows_table;
pub use radius::{
    GapRow, RadiusRow, ShareRow, WayRow, gaps_text, protocol_text, radius_text, shares_text, span_text,
    ways_text,
};
pub use routers::routers_table;
