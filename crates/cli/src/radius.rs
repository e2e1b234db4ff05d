//! `farpath radius`: how far TCP reaches.

mod gaps;
mod kernel;
mod protocols;

use crate::args::{Cli, Command, RadiusArgs};
use crate::error::CliError;
use crate::{Ending, interrupt, output, progress, run};
use clap::Parser;
use farpath_engine::{
    CheckedRadius, CheckedShare, LIGHT_KM_PER_S, Race, Radius, RadiusKind, Span, UnderLoss, beyond_relay,
    check_radius, check_under_loss, radii, radii_under_loss, relay_region,
};
use farpath_experiment::{
    Body, Distance, KernelOnly, Location, Medium, QUICK_PATH_STACK, Stack, bodies, medium, shipped_stacks,
};
use farpath_report::html::{Limit, Reach, ReportFile, reach_page, relays_figure};
use farpath_report::tables::{RadiusRow, ShareRow, radius_text, shares_text};
use farpath_units::{Duration, Probability, Rate};
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;

/// Prints the radii of the stacks asked for; [`Ending::Failed`] where a simulation or the kernel has another one,
/// or a run is void.
pub fn radius(args: &RadiusArgs) -> Result<Ending, CliError> {
    if let Some(rtt) = args.gap {
        return gaps::print(args, rtt);
    }
    let ask = Ask::from_args(args)?;
    if let Some(names) = &args.protocol {
        protocols::protocols(names, &ask, args.json)?;
        // Stacks beside them only where they are named.
        if args.stacks.is_empty() {
            return Ok(Ending::Done);
        }
    }
    if args.emulate {
        // Before there are other threads.
        farpath_emulate::may_emulate().map_err(CliError::Emulation)?;
    }
    let report = args.report.as_ref().map(ReportFile::create).transpose()?;
    let bar = progress::bar(0, "radii");
    let watch = Watch {
        stopped: &interrupt::happened,
        planned: &|radii| bar.inc_length(radii),
        done: &|| bar.inc(1),
    };
    let list = predicted(args, &watch)?;
    if interrupt::happened() {
        return Ok(Ending::Interrupted);
    }
    let found = checked(list, args.check, &watch)?;
    drop(bar);
    let mut ending = match (found.complete, found.agrees()) {
        (_, false) => Ending::Failed,
        (true, true) => Ending::Done,
        (false, true) => Ending::Interrupted,
    };
    let reaches: Vec<Reach> = reaches(&found.rows, ask.medium);
    let asked = if args.emulate { kernel::asked(&found.rows, args.connections)? } else { Vec::new() };
    let void = asked.iter().map(kernel::KernelAnswers::void);
    let (void, of) = void.fold((0, 0), |sum, void| (sum.0 + void.0, sum.1 + void.1));
    if asked.iter().any(|asked| !asked.is_complete()) {
        ending = Ending::Interrupted;
    } else if void > 0 {
        run::say_void(void, of);
        ending = Ending::Failed;
    } else if asked.iter().any(kernel::KernelAnswers::disagrees) {
        ending = Ending::Failed;
    }
    if args.json {
        let mut out = output::stdout();
        found.lines(&ask, &asked).into_iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    let Found { rows, shares, .. } = found;
    let medium = ask.medium;
    let row = |(checked, stack): (CheckedRadius, Stack)| {
        let measured = kernel::measured(&stack.name, checked.radius.kind, &asked);
        RadiusRow { kernel: measured.map(ends), ..row(checked, stack.name, &ask) }
    };
    let rows: Vec<_> = rows.into_iter().map(row).collect();
    let relays = ask.to.as_ref().and_then(|to| {
        let limit = |reach: &Reach| Limit { what: reach.stack.clone(), km: reach.km[1] };
        relays_figure(&reaches.iter().map(limit).collect::<Vec<_>>(), to, bodies())
    });
    let page = || reach_page(&reaches, relays, bodies(), &medium.title, &rows).render();
    let written = report.map_or(Ok(()), |report| report.finish(&page()));
    if args.json {
        written?;
        return Ok(ending);
    }
    if let Some(Distance { title, km }) = &ask.to {
        let rtt = 2.0 * owd(*km, medium);
        output::print(&format!("To {title}, {km} km in {}: a round trip of {rtt:.3} s\n", medium.title))?;
    }
    if let Some(text) = ask.relays(&rows) {
        output::print(&format!("{text}\n"))?;
    }
    output::print(&radius_text(&rows, output::width()))?;
    if !shares.is_empty() {
        let rows: Vec<_> = shares.into_iter().map(|(stack, share)| share_row(stack, &share)).collect();
        output::print(&format!("\n{}", shares_text(&rows, output::width())))?;
    }
    for asked in &asked {
        output::print(&asked.text())?;
    }
    written?;
    Ok(ending)
}

/// What is asked of stacks where no command asks it.
#[derive(Debug, Clone, Default)]
pub struct RadiusQuestion {
    /// By name, or files; all that ship where none is named.
    pub stacks: Vec<String>,
    /// Whether each radius reaches there.
    pub to: Option<String>,
    /// Over a relay that stands there.
    pub via: Option<String>,
    /// Of the link that a full window is to fill.
    pub rate: Option<Rate>,
    /// Of packets, both ways: a radius for each.
    pub loss: Vec<Probability>,
    /// In place of the radii the longest gap between contacts, over a path of this round trip.
    pub gap: Option<Duration>,
    /// By simulation too.
    pub check: bool,
}

impl RadiusQuestion {
    fn into_args(self) -> RadiusArgs {
        let RadiusQuestion { stacks, to, via, rate, loss, gap, check } = self;
        // What nobody asks is as the command has it.
        let Command::Radius(unasked) = Cli::parse_from(["farpath", "radius"]).command else {
            unreachable!("it is that command");
        };
        RadiusArgs { stacks, to, via, rate, loss, gap, check, ..unasked }
    }
}

/// What `farpath radius --json` prints, line by line, for a host that has its own way to be interrupted; [`Watch`] says how far it
/// is.
///
/// # Errors
/// A stack, or a place, that is not there, and whatever the command fails at.
pub fn radius_lines(
    question: RadiusQuestion,
    watch: &Watch<'_>,
) -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
    let args = question.into_args();
    if let Some(rtt) = args.gap {
        return Ok(gaps::lines(&args, rtt, watch)?.iter().map(Value::to_string).collect());
    }
    let ask = Ask::from_args(&args)?;
    let found = checked(predicted(&args, watch)?, args.check, watch)?;
    Ok(found.lines(&ask, &[]).iter().map(Value::to_string).collect())
}

/// Whether anybody still waits, and who is told how far it is.
pub struct Watch<'a> {
    /// Whether nobody does.
    pub stopped: &'a dyn Fn() -> bool,
    /// So many more radii are looked for.
    pub planned: &'a dyn Fn(u64),
    /// One was found.
    pub done: &'a dyn Fn(),
}

/// A stack by name or file, whose radii follow from what Farpath knows of it.
fn loaded(name: &str) -> Result<Stack, CliError> {
    let stack = Stack::load(name)?;
    let refused = |source: KernelOnly| CliError::Engine { file: name.into(), source: source.into() };
    stack.needs_no_kernel("radius").map_err(refused)?;
    stack
        .needs_no_foreign_host("radius")
        .map_err(|source| CliError::ForeignStack { file: name.into(), source })?;
    Ok(stack)
}

/// The radii of the stacks asked for.
fn predicted(args: &RadiusArgs, watch: &Watch<'_>) -> Result<Vec<(Stack, Radius)>, CliError> {
    let names: Vec<String> = match args.stacks.as_slice() {
        [] if args.emulate => vec![QUICK_PATH_STACK.to_owned()],
        [] => shipped_stacks().iter().map(|file| file.name.to_owned()).collect(),
        names => names.to_vec(),
    };
    (watch.planned)((names.len() * args.loss.len()) as u64);
    let mut list = Vec::new();
    for name in &names {
        let stack = loaded(name)?;
        let refused = |source| CliError::Radius { stack: name.clone(), source };
        let mut found = radii(&stack.config, args.rate).map_err(refused)?;
        for &loss in args.loss.iter().take_while(|_| !(watch.stopped)()) {
            found.extend(radii_under_loss(&stack.config, loss, args.size).map_err(refused)?);
            (watch.done)();
        }
        list.extend(found.into_iter().map(|radius| (stack.clone(), radius)));
    }
    Ok(list)
}

/// Radii, and beside them what simulations say, where these are asked for.
struct Found {
    rows: Vec<(CheckedRadius, Stack)>,
    shares: Vec<(String, CheckedShare)>,
    /// Nobody has stopped it.
    complete: bool,
}

fn checked(list: Vec<(Stack, Radius)>, check: bool, watch: &Watch<'_>) -> Result<Found, CliError> {
    let mut found = Found { rows: Vec::new(), shares: Vec::new(), complete: true };
    (watch.planned)(if check { list.len() as u64 } else { 0 });
    for (stack, radius) in list {
        if !check {
            found.rows.push((CheckedRadius { radius, simulated: None }, stack));
            continue;
        }
        if (watch.stopped)() {
            found.complete = false;
            break;
        }
        let failed = |source| CliError::Engine { file: stack.name.clone().into(), source };
        let under_loss = check_under_loss(&stack.config, &radius).map_err(failed)?;
        found.shares.extend(under_loss.into_iter().map(|share| (stack.name.clone(), share)));
        found
            .rows
            .push((check_radius(&stack.config, &radius).map_err(|source| failed(source.into()))?, stack));
        (watch.done)();
    }
    Ok(found)
}

impl Found {
    /// Whether each simulation says the same.
    fn agrees(&self) -> bool {
        let near =
            |checked: &CheckedRadius| checked.error().is_none_or(|error| error.abs() <= checked.tolerance());
        self.rows.iter().all(|(checked, _)| near(checked))
            && self.shares.iter().all(|(_, share)| share.agrees())
    }

    fn lines(&self, ask: &Ask<'_>, asked: &[kernel::KernelAnswers]) -> Vec<Value> {
        let row = |(checked, stack): &(CheckedRadius, Stack)| {
            let mut value = row_json(checked, &stack.name, ask);
            kernel::enter(&mut value, checked.radius.kind, &stack.name, asked);
            value
        };
        let shares = self.shares.iter().map(|(stack, share)| share_json(stack, share));
        self.rows
            .iter()
            .map(row)
            .chain(shares)
            .chain(asked.iter().flat_map(kernel::KernelAnswers::lines))
            .collect()
    }
}

fn share_row(stack: String, share: &CheckedShare) -> ShareRow {
    let CheckedShare { under, rtt, predicted, simulated } = *share;
    let UnderLoss { completes, size, loss, .. } = under;
    let what = if completes { format!("send {size}") } else { "open".to_owned() };
    let what = format!("{what}, {loss} lost");
    ShareRow { stack, what, rtt, predicted, simulated, agrees: share.agrees() }
}

fn share_json(stack: &str, share: &CheckedShare) -> Value {
    let CheckedShare { under: UnderLoss { completes, size, loss, .. }, rtt, predicted, simulated } = share;
    let interval = simulated.interval();
    json!({
        "stack": stack,
        "share_of": if *completes { "completed" } else { "opened" },
        "loss_rate": loss.fraction(),
        "size_bytes": size.0,
        "rtt_s": rtt,
        "predicted": predicted,
        "simulated": simulated.share,
        "simulated_low": interval.map(|(low, _)| low),
        "simulated_high": interval.map(|(_, high)| high),
        "trials": simulated.trials,
        "agrees": share.agrees(),
    })
}

/// What the picture shows of each stack.
fn reaches(rows: &[(CheckedRadius, Stack)], medium: &Medium) -> Vec<Reach> {
    let of = |rows: &[(CheckedRadius, Stack)]| {
        let km_of = |kind| {
            let radius = rows.iter().map(|(checked, _)| &checked.radius).find(|radius| radius.kind == kind);
            radius.map(|radius| km(radius, medium))
        };
        let usable = km_of(RadiusKind::Usable)?;
        let abandoned = km_of(RadiusKind::Abandoned)?;
        let stack = rows[0].1.name.clone();
        Some(Reach { stack, km: [km_of(RadiusKind::SynAgain(1)).unwrap_or(usable), usable, abandoned] })
    };
    // An interrupt leaves the last stack without its end.
    rows.chunk_by(|one, other| one.1.name == other.1.name).filter_map(of).collect()
}

/// What is asked of every radius.
struct Ask<'a> {
    medium: &'a Medium,
    /// Whether it reaches there.
    to: Option<Distance>,
    /// Over a relay that stands there.
    via: Option<Distance>,
}

impl Ask<'_> {
    fn from_args(args: &RadiusArgs) -> Result<Ask<'static>, CliError> {
        let place = |text: &Option<String>, option: &str| {
            text.as_deref().map(|text| Distance::parse(text, &Location::option(option))).transpose()
        };
        let (to, via) = (place(&args.to, "--to")?, place(&args.via, "--via")?);
        Ok(Ask { medium: medium(&args.medium, "--medium")?, to, via })
    }

    /// How far beyond the relay the far end may be, in km.
    fn beyond_relay(&self, km: f64) -> Option<f64> {
        beyond_relay(km, self.via.as_ref()?.km).ok()?.value
    }

    /// With both ends known, where the relay may be for the widest of the usable radii: an ellipsoid with the ends as foci.
    fn relays(&self, rows: &[RadiusRow]) -> Option<String> {
        let (to, _) = (self.to.as_ref()?, self.via.as_ref()?);
        let usable = rows.iter().filter(|row| row.radius == RadiusKind::Usable.name() && row.km.is_finite());
        let farthest = usable.max_by(|a, b| a.km.total_cmp(&b.km))?;
        let region = relay_region(farthest.km, to.km).ok()?.value?;
        Some(format!(
            "Any relay between the Earth and {}, for {}: no more than {:.4e} km beyond either of them, nor {:.4e} km aside of \
             the middle (an ellipsoid with both as foci)",
            to.title, farthest.stack, region.beyond, region.semi_minor
        ))
    }

    fn add_to(&self, value: &mut Value, km: f64) {
        let finite = |value: f64| value.is_finite().then_some(value);
        if let Some(target) = &self.to {
            value["reaches"] = (target.km <= km).into();
            let region = relay_region(km, target.km).ok().and_then(|region| region.value);
            value["relay_at_most"] = match region {
                Some(region) => {
                    json!({ "beyond_km": finite(region.beyond), "aside_km": finite(region.semi_minor) })
                }
                None => Value::Null,
            };
        }
        if self.via.is_some() {
            value["beyond_relay_km"] = self.beyond_relay(km).and_then(finite).into();
        }
    }
}

/// One way, in km, of a round trip in s.
fn owd_km(rtt: f64, medium: &Medium) -> f64 {
    rtt / 2.0 * LIGHT_KM_PER_S / medium.refractive_index
}

/// One way, in s.
fn owd(km: f64, medium: &Medium) -> f64 {
    km / LIGHT_KM_PER_S * medium.refractive_index
}

fn km(radius: &Radius, medium: &Medium) -> f64 {
    owd_km(radius.rtt.least, medium)
}

fn inside(km: f64) -> Option<&'static Body> {
    bodies().iter().rev().find(|body| body.km <= km)
}

fn row(checked: CheckedRadius, stack: String, ask: &Ask<'_>) -> RadiusRow {
    let error = checked.error();
    let CheckedRadius { radius, simulated } = checked;
    let km = km(&radius, ask.medium);
    RadiusRow {
        stack,
        radius: radius.kind.name(),
        rtt: ends(radius.rtt),
        km,
        inside: inside(km).filter(|_| km.is_finite()).map(|body| body.short_title().to_owned()),
        beyond_relay: ask.beyond_relay(km),
        reaches: ask.to.as_ref().map(|target| target.km <= km),
        simulated: simulated.map(ends),
        error,
        kernel: None,
        // The usable radius is the same race.
        note: radius.race.filter(|_| radius.kind == RadiusKind::HalfOpen).map(race),
        timer: radius.timer,
    }
}

fn ends(Span { least, most }: Span) -> (f64, f64) {
    (least, most)
}

fn race(Race { early, late, early_share }: Race) -> String {
    let share = early_share
        .map_or("either may be first".to_owned(), |share| format!("{:.1} % of connections", share * 100.0));
    format!(
        "the server gives up by {early:.1} s where its timer comes before the SYN that comes again ({share}), else from \
         {late:.1} s on"
    )
}

/// What has no end is null: JSON has no infinity.
fn row_json(checked: &CheckedRadius, stack: &str, ask: &Ask<'_>) -> Value {
    let finite = |value: f64| value.is_finite().then_some(value);
    let CheckedRadius { radius, simulated } = checked;
    let km = km(radius, ask.medium);
    let mut value = json!({
        "stack": stack,
        "radius": radius.kind.id(),
        "what": radius.kind.name(),
        "set_by": radius.timer,
        "rtt_s": finite(radius.rtt.least),
        "rtt_at_most_s": finite(radius.rtt.most),
        "owd_s": finite(radius.rtt.least / 2.0),
        "km": finite(km),
        "medium": ask.medium.name,
        "last_inside": inside(km).filter(|_| km.is_finite()).map(|body| &body.name),
        "without_end": radius.rtt.least == f64::INFINITY,
    });
    if let Some(simulated) = simulated {
        value["simulated_rtt_s"] = finite(simulated.least).into();
        value["simulated_rtt_at_most_s"] = finite(simulated.most).into();
        value["error_s"] = checked.error().and_then(finite).into();
    }
    if let RadiusKind::UnderLoss(UnderLoss { size, loss, percent, .. }) = radius.kind {
        value["loss_rate"] = loss.fraction().into();
        value["percent"] = percent.into();
        value["size_bytes"] = size.0.into();
    }
    if let Some(Race { early, late, early_share }) = radius.race {
        value["race"] = json!({ "early_s": early, "late_s": late, "early_share": early_share });
    }
    ask.add_to(&mut value, km);
    value
}
