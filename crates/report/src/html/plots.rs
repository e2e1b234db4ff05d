//! The plots that ship, and what draws them.

use include_dir::{Dir, include_dir};
use serde_json::Value;

static PLOTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../plots");

/// In the order in which they need each other. `make vendor` fetches them.
const RUNTIME: [&str; 3] = [
    include_str!("../../vendor/vega.min.js"),
    include_str!("../../vendor/vega-lite.min.js"),
    include_str!("../../vendor/vega-embed.min.js"),
];

/// What a file that holds the runtime has to say with it.
pub(super) const LICENCES: &str = include_str!("../../vendor/LICENSES.txt");

/// The names of all plots.
pub fn plot_names() -> Vec<&'static str> {
    let mut names: Vec<_> =
        PLOTS.files().filter_map(|file| file.path().to_str()?.strip_suffix(".vl.json")).collect();
    names.sort_unstable();
    names
}

/// The definition of the plot of this name.
pub fn definition(name: &str) -> Option<Value> {
    plot_names().contains(&name).then(|| plot(name))
}

/// The definition of a plot.
///
/// # Panics
/// There is none of this name: figures are made by this program, and its tests look at each.
pub(super) fn plot(name: &str) -> Value {
    let file = PLOTS.get_file(format!("{name}.vl.json"));
    let text =
        file.and_then(|file| file.contents_utf8()).unwrap_or_else(|| panic!("no plot is called {name}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("plots/{name}.vl.json: {error}"))
}

/// The scripts that draw. A test holds that none of them ends the `script` element that it stands in.
pub(super) fn runtime() -> impl Iterator<Item = String> {
    // Source maps are files that a report does not have.
    let without_map = |script: &str| {
        let lines = script.lines().filter(|line| !line.starts_with("//# sourceMappingURL="));
        lines.collect::<Vec<_>>().join("\n")
    };
    RUNTIME.into_iter().map(without_map)
}

/// JSON that may stand within a `script` element, whatever its texts are.
pub(super) fn inline_json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plot_is_a_vega_lite_definition_without_data_in_it() {
        fn data(value: &Value) -> Vec<&Value> {
            match value {
                Value::Object(object) => {
                    let inner = object.values().flat_map(data);
                    object.get("data").into_iter().chain(inner).collect()
                }
                Value::Array(list) => list.iter().flat_map(data).collect(),
                _ => Vec::new(),
            }
        }
        let names = plot_names();
        assert!(!names.is_empty());
        for name in names {
            let plot = plot(name);
            assert_eq!(plot["$schema"], "https://vega.github.io/schema/vega-lite/v6.json", "{name}");
            assert!(plot["description"].as_str().is_some_and(|text| text.contains("Data: ")), "{name}");
            for data in data(&plot) {
                assert!(data["name"].is_string() && data.as_object().is_some_and(|o| o.len() == 1), "{name}");
            }
        }
    }

    #[test]
    fn nothing_that_is_inlined_ends_its_element() {
        let own = include_str!("page.js").to_owned();
        for script in runtime().chain([own]) {
            let script = script.to_lowercase();
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
        let hostile = serde_json::json!({ "</script><script>": "<!-- <script>alert(1)</script>" });
        let text = inline_json(&hostile);
        assert!(!text.contains('<'));
        assert_eq!(serde_json::from_str::<Value>(&text).expect("still JSON"), hostile);
    }
}
