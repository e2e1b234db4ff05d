//! A path as plain data: what an experiment file says, before anything is built from it.

use crate::element::{Built, Element, Fault};
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{BoxedElement, BoxedTransit, Direction, Path, PathPacket, Stage};
use farpath_units::{Bytes, Duration};
use std::collections::BTreeSet;

/// One element of a path: a name that seeds its generators and its keys, and what it is.
///
/// A list of them is a place-by-place picture of the path from the data sender on: reverse packets meet
/// the elements in the opposite order.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementSpec {
    /// Unique within the path.
    pub name: String,
    /// What it is, with its parameters.
    pub kind: ElementKind,
}

/// Why no path is built from a specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Two elements have one name, and would draw the same random numbers.
    #[error("{element}: two elements have this name")]
    DuplicateName {
        /// The name.
        element: String,
    },
    /// An element contradicts itself.
    #[error("{element}: {}: {}", fault.key, fault.reason)]
    Fault {
        /// Its name.
        element: String,
        /// What is wrong.
        fault: Fault,
    },
    /// It holds packets, and is no run of arithmetic.
    #[error("{element}: it holds packets, and is built into a path, not alone")]
    HoldsPackets {
        /// Its name.
        element: String,
    },
}

impl ElementSpec {
    /// What it says of itself.
    pub fn spec(&self) -> &dyn Element {
        self.kind.spec()
    }

    /// Refuses what the types cannot.
    ///
    /// # Errors
    /// When the element contradicts itself.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.spec().validate().map_err(|fault| SpecError::Fault { element: self.name.clone(), fault })
    }

    /// What is allowed and probably not meant.
    pub fn warnings(&self) -> Vec<String> {
        let of_way = |way: &Direction| {
            let way = *way;
            let warnings = self.spec().warnings(way).into_iter();
            warnings.map(move |warning| format!("{}: {way}: {warning}", self.name))
        };
        Direction::BOTH.iter().flat_map(of_way).collect()
    }

    /// The element, with the random numbers that belong to its name in the run of this seed.
    ///
    /// # Errors
    /// Those of [`ElementSpec::validate`], and a kind that holds packets.
    pub fn transit(&self, seed: u64) -> Result<BoxedTransit, SpecError> {
        self.validate()?;
        match self.kind.build::<NoPacket>(&self.name, seed) {
            Built::Transit(transit) => Ok(transit),
            Built::Holding(_) => Err(SpecError::HoldsPackets { element: self.name.clone() }),
        }
    }
}

/// The packet of an element that holds none.
#[derive(Clone)]
pub(crate) enum NoPacket {}

impl PathPacket for NoPacket {
    fn wire_size(&self) -> Bytes {
        match *self {}
    }

    fn carries_data(&self) -> bool {
        match *self {}
    }
}

impl ExplicitRatePacket for NoPacket {}

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
        spec.validate()?;
        match spec.kind.build(&spec.name, seed) {
            Built::Transit(transit) => transits.push((spec.name.clone(), transit)),
            Built::Holding(holding) => {
                elements.extend(fused(&mut transits));
                elements.push(holding);
            }
        }
    }
    elements.extend(fused(&mut transits));
    Ok(Path::from_elements(elements))
}

fn boxed<P: PathPacket + Clone + Send + 'static>(stage: Stage<P>) -> BoxedElement<P> {
    Box::new(stage)
}

/// One-way delay of a lone packet of `size` (IP length): propagation, serialization and access to a free channel, no
/// queueing, not held back by reordering. Saturates at [`Duration::MAX`].
pub fn base_delay(specs: &[ElementSpec], direction: Direction, size: Bytes) -> Duration {
    specs.iter().map(|element| element.spec().lone_delay(direction, size)).sum()
}

/// Routers that a packet passes one way.
pub fn routers(specs: &[ElementSpec], direction: Direction) -> u32 {
    specs.iter().map(|element| element.spec().routers(direction)).fold(0, u32::saturating_add)
}
