//! The report on the Metricom Ricochet, claim by claim.

use crate::common;

use common::{assert_claims, checked, of, paper};
use farpath_report::papers::Verdict;

#[test]
fn claims_are_reproduced_but_for_losses_and_idle_time_of_one_trace_and_jitter() {
    let paper = paper("ricochet");
    assert_claims(&paper, "R002", 16);
    let checked = checked(&paper);
    let of = |verdict| of(&checked, verdict);
    assert_eq!(of(Verdict::Differs), ["R002-02", "R002-03", "R002-06", "R002-06", "R002-14", "R002-14"]);
    // Where 512 B peak; packets and buffers that the report does not name; near saturation.
    assert_eq!(of(Verdict::InPart), ["R002-02", "R002-04", "R002-13"]);
    // What the path was fitted to, or follows from.
    assert_eq!(
        of(Verdict::Fitted),
        ["R002-02", "R002-03", "R002-03", "R002-10", "R002-11", "R002-14", "R002-14"]
    );
    // Those ask the running kernel.
    let kernel = ["R002-02", "R002-04", "R002-06", "R002-06", "R002-06", "R002-07", "R002-11", "R002-14"];
    assert_eq!(of(Verdict::NotRun), kernel);
}
