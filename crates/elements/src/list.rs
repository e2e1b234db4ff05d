//! The list of elements. All that is asked of an element goes by it.

use crate::draw::Draws;
use crate::element::{Built, Declared, Element};
use crate::keys::Keys;
use crate::{
    Bernoulli, BitErrors, Contacts, Delay, Duplicate, EvenlySpaced, ExplicitRatePacket, GilbertElliott, Hops,
    Jitter, Link, Listed, Passes, RadioSpec, Reorder, RouterLines, TokenBucket, TraceLink, VaryingBitErrors,
    VaryingDelay, VaryingLoss, Wait,
};

/// Of each kind its name here, the type that describes it, and how that is held.
macro_rules! elements {
    ($($kind:ident: $spec:ident in $held:ty,)*) => {
        /// What an element is, with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ElementKind {
            $(#[doc = concat!("See [`", stringify!($spec), "`].")] $kind($held),)*
        }

        impl ElementKind {
            /// How many kinds there are: those that files name, and what they become where a value changes over time.
            pub const COUNT: usize = [$(stringify!($kind)),*].len();

            /// What it says of itself.
            pub fn spec(&self) -> &dyn Element {
                match self {
                    $(ElementKind::$kind(held) => {
                        let spec: &$spec = held;
                        spec
                    })*
                }
            }

            /// The same, to be changed.
            pub fn spec_mut(&mut self) -> &mut dyn Element {
                match self {
                    $(ElementKind::$kind(held) => {
                        let spec: &mut $spec = held;
                        spec
                    })*
                }
            }

            /// The element, with the random numbers that belong to its name in the run of this seed.
            pub fn build<P>(&self, name: &str, seed: u64) -> Built<P>
            where
                P: ExplicitRatePacket + Clone + Send + 'static,
            {
                match self {
                    $(ElementKind::$kind(held) => {
                        let spec: &$spec = held;
                        spec.build(name, seed)
                    })*
                }
            }

            /// Reads the keys of the element that files call `name`, and checks them; `None` where there is none.
            ///
            /// # Errors
            /// Those of `keys`: what is missing, and what is not as it should be.
            pub fn read<K: Keys>(name: &str, keys: &mut K) -> Option<Result<ElementKind, K::Error>> {
                let kind = match name {
                    $(_ if <$spec>::NAMES.contains(&name) => <$spec>::read(name, keys),)*
                    _ => return None,
                };
                Some(kind.and_then(|kind| match kind.spec().validate() {
                    Ok(()) => Ok(kind),
                    Err(fault) => Err(keys.refuse(&fault.key, fault.reason)),
                }))
            }

            /// One for property tests.
            pub fn draw(draws: &mut Draws) -> ElementKind {
                let mut number = draws.below(u64::from(0 $(+ <$spec>::WEIGHT)*)) as u32;
                $(
                    if number < <$spec>::WEIGHT {
                        return ElementKind::$kind(<$spec>::draw(draws).into());
                    }
                    number -= <$spec>::WEIGHT;
                )*
                unreachable!("{number} is past the sum of all weights")
            }
        }

        /// What elements are called in a file, and the parameter that each name alone stands for.
        pub fn element_names() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
            let kinds = [$((<$spec>::NAMES, <$spec>::PRINCIPAL)),*];
            kinds.into_iter().flat_map(|(names, principal)| names.iter().map(move |&name| (name, principal)))
        }

        /// The rows of the table of elements in `docs/experiment-files.md`, of each kind.
        pub fn element_docs() -> impl Iterator<Item = &'static str> {
            [$(<$spec>::DOCS),*].into_iter().filter(|rows| !rows.is_empty())
        }
    };
}

elements! {
    Link: Link in Link,
    Delay: Delay in Delay,
    Wait: Wait in Wait,
    Hops: Hops in Hops,
    Bernoulli: Bernoulli in Bernoulli,
    EvenlySpaced: EvenlySpaced in EvenlySpaced,
    Listed: Listed in Listed,
    GilbertElliott: GilbertElliott in GilbertElliott,
    BitErrors: BitErrors in BitErrors,
    Reorder: Reorder in Reorder,
    Duplicate: Duplicate in Duplicate,
    Jitter: Jitter in Jitter,
    TokenBucket: TokenBucket in TokenBucket,
    Contacts: Contacts in Contacts,
    TraceLink: TraceLink in TraceLink,
    VaryingDelay: VaryingDelay in VaryingDelay,
    Passes: Passes in Box<Passes>,
    VaryingLoss: VaryingLoss in VaryingLoss,
    VaryingBitErrors: VaryingBitErrors in VaryingBitErrors,
    FlowRouter: RouterLines in Box<RouterLines>,
    Radio: RadioSpec in Box<RadioSpec>,
}
