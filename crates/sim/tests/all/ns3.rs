//! What `make oracle` has found equal to ns-3 3.44 segment by segment, held by the time at which the last byte is
//! read, to the nanosecond: whichever rule of ns-3's got lost, of growth, of recovery or of the timer, one would move.

use crate::common::{self, delay, link, run_one, stacks, upload};
use farpath_elements::{ElementKind, Listed, PacketCount};
use farpath_path::PerDirection;
use farpath_units::Bytes;

/// About one packet in a hundred, counted at the receiver, from 1.
const DROPS: [u64; 37] = [
    108, 132, 258, 424, 430, 477, 542, 550, 647, 747, 784, 912, 1067, 1078, 1130, 1242, 1246, 1436, 1494,
    1550, 1604, 1674, 1865, 1910, 2087, 2184, 2365, 2465, 2517, 2690, 2738, 2841, 2926, 2997, 3016, 3170,
    3462,
];

#[test]
fn five_megabytes_with_listed_losses_take_what_ns3_says_to_the_nanosecond() {
    for (mut stack, sack, window, ns3) in [
        (stacks::ns3_newreno(), false, 8760, 33597152912),
        (stacks::ns3_newreno(), false, 64240, 20310035776),
        (stacks::ns3_newreno(), true, 8760, 33676897136),
        (stacks::ns3_newreno(), true, 64240, 21589960160),
        (stacks::ns3_linux_reno(), false, 8760, 27315251376),
        (stacks::ns3_linux_reno(), false, 64240, 11065836672),
        (stacks::ns3_linux_reno(), true, 8760, 27195125616),
        (stacks::ns3_linux_reno(), true, 64240, 10985904144),
    ] {
        stack.recovery.sack = sack;
        stack.receive.buffer = Bytes(window);
        let packets = PerDirection { forward: DROPS.to_vec(), reverse: Vec::new() };
        let drops = common::element(
            "drops",
            ElementKind::Listed(Listed { times: PerDirection::default(), packets, count: PacketCount::All }),
        );
        let path = vec![link("1 Gbit/s", 2), delay("20 ms"), drops];
        let result = run_one(path, upload(&stack, 5_000_000));
        assert_eq!(result.ended_at.as_nanos(), ns3, "SACK {sack}, window {window}");
        assert_eq!(result.drops.forward.total(), DROPS.len() as u64);
    }
}
