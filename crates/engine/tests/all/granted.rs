//! A file at a granted rate, simulated beside the bound with the tail of its repair (docs/models/explicit-rate.md).

use crate::common::{Compared, compare, predict};

/// 8 MB over a flow router of 100 Mbit/s, losses both ways.
fn experiment(delay: &str, loss: &str, seeds: u32) -> String {
    format!(
        "title = \"granted\"\nseeds = {seeds}\nhorizon = \"1 h\"\n\
         [[path]]\nelement = \"flow-router\"\nname = \"router\"\nrate = \"100 Mbit/s\"\nqueue = \"1000 packets\"\n\
         [[path]]\nelement = \"loss\"\nrate = \"{loss}\"\n\
         [[path]]\nelement = \"delay\"\ndelay = \"{delay}\"\n\
         [sender]\nstack = \"linux-6\"\nsend.buffer = \"256 MB\"\nexplicit_rate.wanted = \"100 Mbit/s\"\n\
         explicit_rate.loss_limit_per_mille = 200\n\
         [receiver]\nstack = \"linux-6\"\nreceive.buffer = \"256 MB\"\nexplicit_rate.wanted = \"100 Mbit/s\"\n\
         [transfer]\nsize = \"8 MB\"\nopener = \"sender\"\n"
    )
}

#[test]
fn simulated_files_take_what_the_bound_says() {
    for delay in ["5 ms", "20 ms", "250 ms", "500 ms"] {
        // With losses both are means: of the longest of some thousand repairs, and of handshakes of which one in five waits
        // a second. So many seeds leave 4 % of chance; what is repaired while the file still leaves makes the bound up to 7 % high. With
        // 10 % lost three tails in ten wait for the timer by Linux's RACK, one by RFC 8985's: over 250 ms 4.44 ± 0.16 s of a hundred
        // seeds, and 3.88 ± 0.17, where 3.92 are predicted.
        for (loss, seeds, tolerance) in
            [("0 %", 1, 0.01), ("0.2 %", 9, 0.1), ("1 %", 9, 0.1), ("2 %", 9, 0.1), ("10 %", 20, 0.15)]
        {
            let Compared { predicted, simulated, by, .. } =
                compare(&experiment(delay, loss, seeds)).remove(0);
            assert!(by.contains("constant rate"), "{by}");
            let told = format!("{delay}, {loss}: predicted {predicted:?}, simulated {simulated:?}");
            assert!((simulated.seconds / predicted.seconds - 1.0).abs() < tolerance, "{told}");
            // With 10 % of the ACKs lost 5.4 % at most were seen: one that stands for others is lost with what it reports, and some of that
            // leaves again. Counted as Linux does, fewer segments are acknowledged at once; counted by segments it was 3 %.
            let most = if loss == "10 %" { 0.06 * predicted.retransmissions } else { 10.0 };
            assert!((simulated.retransmissions - predicted.retransmissions).abs() < most, "{told}");
        }
    }
}

/// A window that no scale multiplies is 64 kB, whatever the buffers hold.
#[test]
fn without_window_scaling_the_window_sets_the_rate() {
    let text = experiment("50 ms", "0 %", 1)
        .replace("explicit_rate.wanted", "send.window_scaling = false\nexplicit_rate.wanted");
    let Compared { predicted, simulated, .. } = compare(&text).remove(0);
    assert!(predicted.seconds > 10.0, "{predicted:?}");
    // An ACK waits for the second segment, or for its timer: 3 % of 64 kB.
    assert!((simulated.seconds / predicted.seconds - 1.0).abs() < 0.05, "{predicted:?} {simulated:?}");
    let said = predict(&text).remove(0).provenance.caveats;
    assert!(said.iter().any(|caveat| caveat.contains("window scaling")), "{said:?}");
}

#[test]
fn where_nothing_is_granted_the_prediction_says_why() {
    let text = experiment("20 ms", "1 %", 1);
    let blind = "[[path]]\nelement = \"link\"\nrate = \"50 Mbit/s\"\nqueue = \"unlimited\"\n[sender]";
    let ask = "explicit_rate.wanted = \"100 Mbit/s\"";
    for (change, why) in [
        (text.replace("rate = \"1 %\"", "rate = \"30 %\""), "more is lost than the limit of 20 %"),
        (text.replace("[sender]", blind), "96 Mbit/s are more than a link has that knows nothing of it"),
        (text.replace("name = \"router\"", "name = \"router\"\nblind = true"), "no flow router on the path"),
        (
            text.replacen(&format!("buffer = \"256 MB\"\n{ask}\n["), "buffer = \"256 MB\"\n[", 1),
            "does not answer",
        ),
        (
            text.replace("per_mille = 200", "per_mille = 200\nexplicit_rate.type = \"maximum\""),
            "available rate",
        ),
    ] {
        let run = predict(&change).remove(0);
        let said = &run.provenance.caveats;
        assert!(
            said.iter().any(|caveat| caveat.contains("explicit rate is left out") && caveat.contains(why)),
            "{why}: {said:?}"
        );
        assert!(!run.flows[0].detail.contains("constant rate"));
    }
    let small = text
        .replace("256 MB", "1 MB")
        .replace("per_mille = 200", "per_mille = 200\nexplicit_rate.size_buffers = false");
    let said = predict(&small).remove(0).provenance.caveats;
    assert!(said.iter().any(|caveat| caveat.contains("takes buffers of")), "{said:?}");
}
