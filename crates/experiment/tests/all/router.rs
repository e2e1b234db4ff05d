//! What `farpath explicit-rate router` is told, as it is read.

use farpath_experiment::RouterConfig;
use farpath_path::Direction;
use farpath_tia1039::Priority;
use farpath_tia1039::router::RouterSettings;

const CONFIG: &str = "inside = \"eth1\"\noutside = \"eth0\"\nrate = \"20 Mbit/s\"\nqueue = \"500 kB\"\n";

/// The share of guarantees and the highest preemption priority, each way.
fn guarantees(keys: &str) -> [(f64, Priority); 2] {
    let config = RouterConfig::parse(&format!("{CONFIG}{keys}"), "router.toml").expect("it can be read");
    Direction::BOTH.map(|way| {
        let settings = &config.lines.settings[way];
        (settings.guaranteed.fraction(), settings.preemption)
    })
}

#[test]
fn guarantees_and_their_priority_are_settings_of_an_interface() {
    let rest = RouterSettings::default();
    assert_eq!((rest.guaranteed.fraction(), rest.preemption), (0.9, Priority::HIGHEST));
    assert_eq!(guarantees(""), [(0.9, Priority::HIGHEST); 2]);
    let low = Priority::new(20).expect("a level");
    assert_eq!(guarantees("guaranteed = \"50 %\"\npreemption = 20"), [(0.5, low); 2]);
    assert_eq!(
        guarantees("guaranteed = { reverse = \"0 %\" }\npreemption = { forward = 20 }"),
        [(0.9, low), (0.0, Priority::HIGHEST)]
    );
}
