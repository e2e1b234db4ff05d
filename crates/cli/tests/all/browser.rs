//! Reports in a real browser: nothing on its console, every figure drawn, nothing wider than the window, at the width
//! of a laptop and of a phone.

use assert_cmd::cargo::cargo_bin;
use farpath_testing::{Need, skip};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::spawn;
use std::time::Duration;

/// Laptop and phone.
const WIDTHS: [u32; 2] = [1366, 390];

/// Added to a copy of the report: goes through its runs, measures the page with each, and tells the page around it.
const MEASURE: &str = r#"<script>
const root = document.documentElement;
const marks = "symbol path, line path, area path, rule line, rect path, text text";
const selector = marks.split(", ").map((mark) => `.role-mark.mark-${mark}`).join(", ");
const choice = document.querySelector("select.runs");
const shown = () => [...document.querySelectorAll("figure")].filter((figure) => !figure.closest("[hidden]"));
const pages = [];
const next = () => {
  if (shown().some((figure) => figure.dataset.state === "drawing")) return;
  pages.push({
    width: innerWidth,
    overflow: root.scrollWidth - root.clientWidth,
    figures: shown().map((figure) => ({
      id: figure.id,
      state: figure.dataset.state,
      marks: figure.querySelectorAll(selector).length,
    })),
  });
  if (choice && choice.selectedIndex + 1 < choice.options.length) {
    choice.selectedIndex += 1;
    choice.dispatchEvent(new Event("change"));
  } else {
    clearInterval(timer);
    parent.postMessage(pages, "*");
  }
};
const timer = setInterval(next, 200);
</script>"#;

/// A page with another in it at each of the widths: a browser's own window is never as narrow as a phone. Both at once, for a
/// browser takes longer to start than to draw.
fn frames(page: &str) -> String {
    let frames = WIDTHS.map(|width| {
        format!(r#"<iframe src="{page}" width="{width}" height="900" style="border: 0"></iframe>"#)
    });
    format!(
        r#"<!DOCTYPE html>{}<pre></pre><script>
const measured = [];
addEventListener("message", (event) => {{
  measured.push(...event.data);
  document.querySelector("pre").textContent = JSON.stringify(measured);
}});
</script>"#,
        frames.concat()
    )
}

/// A browser, or a loud word that there is none.
fn browser() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        let why = "no chromium here (Debian: apt-get install chromium); no report was looked at in a browser";
        skip(Need::Chromium, why);
    }
    found
}

/// What the browser made of a page, and what it said on its console.
struct Shown {
    dom: String,
    console: Vec<String>,
}

/// Opens the page `name` of a folder.
fn show(browser: &Path, folder: &Path, name: &str) -> Shown {
    let file = |name: &str| File::create(folder.join(name)).expect("the folder takes files");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        // Whatever asks for a host gets none.
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--virtual-time-budget=30000", "--dump-dom"])
        .arg("--window-size=1800,1000")
        .arg(format!("file://{}/{name}", folder.display()))
        .stdin(Stdio::null())
        .stdout(file("dom.html"))
        .stderr(file("log"))
        .process_group(0)
        .spawn()
        .expect("the browser starts");
    let group = format!("-{}", child.id());
    let (ended, end) = mpsc::channel();
    let waiting = spawn(move || ended.send(child.wait().expect("it is ours")));
    if end.recv_timeout(Duration::from_secs(120)).is_err() {
        // Its helpers too: they are in its group.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        panic!("the browser did not come to an end within 2 min");
    }
    waiting.join().expect("it has ended").expect("somebody listens");
    let log = fs::read(folder.join("log")).expect("written");
    let console = String::from_utf8_lossy(&log)
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(str::to_owned)
        .collect();
    Shown { dom: fs::read_to_string(folder.join("dom.html")).expect("written"), console }
}

impl Shown {
    /// What the pages in the frames measured.
    fn measured(&self) -> Value {
        let text = self.dom.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next());
        serde_json::from_str(text.unwrap_or_default())
            .unwrap_or_else(|_| panic!("nothing was measured: {}", self.dom))
    }
}

fn farpath(args: &[&str]) {
    let output = Command::new(cargo_bin("farpath")).args(args).output().expect("the command starts");
    // A paper's claims may differ, which is 1.
    let done = output.status.code().is_some_and(|code| code < 2);
    assert!(done, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes the report of an experiment and looks at all of its runs at both widths. Gives how many figures each shows.
fn look_at(args: &[&str]) -> Vec<usize> {
    let Some(browser) = browser() else { return Vec::new() };
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.html");
    farpath(&[args, &["--report", report.to_str().expect("UTF-8")]].concat());
    let html = fs::read_to_string(&report).expect("written");
    assert!(html.len() < 4_000_000, "a report of {} bytes", html.len());
    // The scripts name that element as well: it is the last one that ends the page.
    let (page, _) = html.rsplit_once("</body>").expect("a whole page");
    fs::write(folder.path().join("measured.html"), format!("{page}{MEASURE}</body></html>"))
        .expect("written");
    fs::write(folder.path().join("frames.html"), frames("measured.html")).expect("written");
    let shown = show(&browser, folder.path(), "frames.html");
    assert_eq!(shown.console, [] as [&str; 0], "{args:?}");
    let pages = shown.measured();
    let pages = pages.as_array().expect("a list");
    for width in WIDTHS {
        let count = pages.iter().filter(|page| page["width"] == width).count();
        assert_eq!(count * WIDTHS.len(), pages.len(), "{args:?}: every run at both widths");
    }
    let look = |page: &Value| {
        assert_eq!(page["overflow"], 0, "{args:?}: wider than the window: {page}");
        let figures = page["figures"].as_array().expect("a list");
        for figure in figures {
            assert_eq!(figure["state"], "drawn", "{args:?}: {page}");
            assert_ne!(figure["marks"], 0, "{args:?}: {page}");
        }
        figures.len()
    };
    pages.iter().map(look).collect()
}

#[test]
fn a_single_run_is_drawn_at_both_widths() {
    let drawn = look_at(&["run", "single-drop"]);
    assert!(drawn.iter().all(|figures| *figures >= 5), "{drawn:?}");
}

#[test]
fn every_run_of_a_sweep_is_drawn_at_both_widths() {
    let drawn = look_at(&["run", "noisy-channel", "--seeds", "2"]);
    assert!(drawn.is_empty() || drawn.len() == 10, "five points, two widths: {drawn:?}");
    assert!(drawn.iter().all(|figures| *figures >= 6), "{drawn:?}");
}

#[test]
fn predictions_alone_have_a_figure_too() {
    let drawn = look_at(&["predict", "geo"]);
    assert!(drawn.iter().all(|figures| *figures >= 2), "two receive buffers: {drawn:?}");
}

#[test]
fn a_transfer_that_never_begins_is_shown_without_complaint() {
    look_at(&[
        "run",
        "single-drop",
        "--set",
        "path=[{element='loss', rate='100 %'}, {element='delay', delay='1 s'}]",
    ]);
}

#[test]
fn several_flows_have_their_rates_together() {
    let drawn = look_at(&["simulate", "single-drop", "--set", "flow=[{count=4, spacing='1 s'}]"]);
    assert!(drawn.is_empty() || drawn.len() == 6, "the first three of four flows, two widths: {drawn:?}");
}

#[test]
fn the_figures_of_a_paper_are_drawn() {
    let drawn = look_at(&["reproduce", "high-ber"]);
    assert!(drawn.iter().all(|figures| *figures == 8), "2 to 8 in seven, and 10: {drawn:?}");
}

#[test]
fn a_sweep_over_many_numbers_is_drawn_as_curves() {
    let few = "sweep.path.delay=0.1 s to 4 s by 0.1 s";
    let drawn = look_at(&["simulate", "single-drop", "--set", few, "--set", "output.series=false"]);
    assert!(drawn.iter().all(|figures| *figures >= 2), "transfer time and efficiency: {drawn:?}");
}

#[test]
fn how_far_stacks_reach_is_a_picture_and_so_are_the_figures_of_the_paper() {
    let drawn = look_at(&["radius", "--to", "moon"]);
    assert!(drawn.iter().all(|figures| *figures == 2), "the stacks, and where a relay may stand: {drawn:?}");
    let drawn = look_at(&["reproduce", "radius"]);
    assert!(drawn.iter().all(|figures| *figures == 6), "1 to 5, and the step at 12 s: {drawn:?}");
}

#[test]
fn a_hostile_title_is_text() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let title = "</title></h1><script>document.documentElement.dataset.owned = 1</script><img src=x onerror=alert(1)>";
    let report = folder.path().join("report.html");
    farpath(&[
        "run",
        "single-drop",
        "--set",
        &format!("title='''{title}'''"),
        "--report",
        report.to_str().expect("UTF-8"),
    ]);
    let shown = show(&browser, folder.path(), "report.html");
    assert_eq!(shown.console, [] as [&str; 0]);
    assert!(!shown.dom.contains("data-owned"), "the title ran as a script");
    assert!(
        shown.dom.contains("<h1>&lt;/title&gt;&lt;/h1&gt;&lt;script&gt;"),
        "it is shown as it was written"
    );
}
