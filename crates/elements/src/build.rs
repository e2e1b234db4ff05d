//! From a path as data to a chain of elements.

use crate::{ElementKind, ElementSpec, ExplicitRatePacket, FlowRouter, Radio, SpecError};
use farpath_path::{BoxedElement, Path, PathPacket, Stage};
use std::collections::BTreeSet;

/// Builds what the specifications say; every element draws its own random numbers from `seed`.
///
/// # Errors
/// When two elements have one name, or one of them contradicts itself.
pub fn build_path<P>(specs: &[ElementSpec], seed: u64) -> Result<Path<P>, SpecError>
where
    P: ExplicitRatePacket + Clone + Send + 'static,
{
    let mut names = BTreeSet::new();
    let mut elements: Vec<BoxedElement<P>> = Vec::new();
    let mut transits = Vec::new();
    let fused = |transits: &mut Vec<_>| Stage::fuse(core::mem::take(transits)).into_iter().map(boxed);
    for spec in specs {
        if !names.insert(spec.name.as_str()) {
            return Err(SpecError::DuplicateName { element: spec.name.clone() });
        }
        let name = spec.name.clone();
        let holding: BoxedElement<P> = match &spec.kind {
            ElementKind::FlowRouter(lines) => Box::new(FlowRouter::new(name, lines, seed)),
            ElementKind::Radio(radio) => Box::new(Radio::new(name, radio, seed)),
            _ => {
                transits.push((name, spec.transit(seed)?));
                continue;
            }
        };
        spec.validate()?;
        elements.extend(fused(&mut transits));
        elements.push(holding);
    }
    elements.extend(fused(&mut transits));
    Ok(Path::from_elements(elements))
}

fn boxed<P: PathPacket + Clone + Send + 'static>(stage: Stage<P>) -> BoxedElement<P> {
    Box::new(stage)
}
