//! What a row of the table of parameters says, and what is made of it.
//!
//! A section is a struct of [`Config`](super::Config), written as a list of rows by [`section!`]. A row gives the field with
//! its documentation and default, and an entry of [`parameters`](super::parameters), from which stack files are read and
//! written, values are checked, the guide's tables are made, and property tests draw.

use super::Config;
use core::fmt;
use core::ops::RangeInclusive;
use farpath_units::{Bytes, Duration, Rate};

/// A parameter of a stack.
#[derive(Debug)]
pub struct Parameter {
    /// The table of the stack file that it stands in, such as `rto`; empty for none.
    pub section: &'static str,
    /// Its key in that table.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// The word for its absence, where it can be absent.
    pub absent: Option<&'static str>,
    /// The numbers that it can have, in the unit of its kind.
    pub within: RangeInclusive<u64>,
    /// The numbers with which a transfer over a path of some seconds can come to an end; `None` for those usual of its kind.
    pub workable: Option<RangeInclusive<u64>>,
    /// What it means, line by line.
    pub meaning: &'static [&'static str],
    /// The standard or the system that it comes from.
    pub source: &'static str,
    /// Keys of the same section that it took the place of.
    pub formerly: &'static [FormerKey],
    /// How Linux is told to follow it, and how closely it does; `None` where nothing can be told.
    pub told: Option<(&'static str, &'static str)>,
    /// What Linux does whatever the parameter says.
    pub fixed: &'static [FixedByLinux],
    pub(super) get: fn(&Config) -> Value,
    pub(super) set: fn(&mut Config, Value) -> bool,
}

/// A rule of Linux that nothing can change.
#[derive(Debug)]
pub struct FixedByLinux {
    /// What the kernel does.
    pub does: &'static str,
    /// Whether that is what the end with the first configuration does, towards one with the second.
    pub agrees: fn(&Config, &Config) -> bool,
}

/// A key that is no longer read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormerKey {
    /// As stack files spelt it.
    pub name: &'static str,
    /// Where it was a switch: the position that a word of the parameter stands for now, and that word. `None` where the key alone
    /// is another.
    pub word: Option<(bool, &'static str)>,
}

/// What the value of a parameter is, and in which unit [`Value::Number`] counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(&'static [Word]),
    /// A whole number.
    Count,
    /// A time, in nanoseconds.
    Duration,
    /// A size, in bytes.
    Bytes,
    /// A rate, in bit/s.
    Rate,
    /// A rate of a whole number of bytes per second. Stack files say it in bit/s.
    ByteRate,
}

/// A word that can be the value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// As stack files spell it.
    pub name: &'static str,
    /// The switch position that stood for it when the parameter was a switch.
    pub formerly: Option<bool>,
    /// What it means, line by line.
    pub meaning: &'static [&'static str],
}

/// The value of a parameter, whatever its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// None is given.
    Absent,
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of [`Kind::Word`].
    Word(&'static str),
    /// Of any other kind, in its unit.
    Number(u64),
}

impl Parameter {
    /// Its section and name, `rto.min`; the name alone where it stands in no section.
    pub fn key(&self) -> String {
        match self.section {
            "" => self.name.to_owned(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// Its value in `config`.
    pub fn get(&self, config: &Config) -> Value {
        (self.get)(config)
    }

    /// Gives it `value` in `config`. `false`, and nothing is changed, where that is no value of its kind, or beyond
    /// [`Parameter::within`].
    #[must_use]
    pub fn set(&self, config: &mut Config, value: Value) -> bool {
        if let Value::Number(number) = value
            && !self.within.contains(&number)
        {
            return false;
        }
        (self.set)(config, value)
    }

    /// `value` as a stack file says it.
    pub fn show(&self, value: Value) -> impl fmt::Display {
        Shown { kind: self.kind, absent: self.absent.unwrap_or_default(), value }
    }
}

struct Shown {
    kind: Kind,
    absent: &'static str,
    value: Value,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self.value {
            Value::Absent => return f.write_str(self.absent),
            Value::Switch(on) => return write!(f, "{on}"),
            Value::Word(word) => return f.write_str(word),
            Value::Number(number) => number,
        };
        match self.kind {
            Kind::Switch | Kind::Word(_) | Kind::Count => write!(f, "{number}"),
            Kind::Duration => Duration::from_nanos(number).fmt(f),
            Kind::Bytes => Bytes(number).fmt(f),
            Kind::Rate => match Rate::from_bit_per_s(number) {
                Some(rate) => rate.fmt(f),
                None => f.write_str("0 bit/s"),
            },
            Kind::ByteRate => write!(f, "{} bit/s", u128::from(number) * 8),
        }
    }
}

/// A type of the fields of a configuration.
pub(crate) trait Scalar: Sized {
    const KIND: Kind;
    /// The numbers that the type holds, in the unit of its kind.
    const NUMBERS: RangeInclusive<u64> = 0..=u64::MAX;
    fn to_value(&self) -> Value;
    fn from_value(value: Value) -> Option<Self>;
}

impl Scalar for bool {
    const KIND: Kind = Kind::Switch;
    fn to_value(&self) -> Value {
        Value::Switch(*self)
    }
    fn from_value(value: Value) -> Option<bool> {
        match value {
            Value::Switch(on) => Some(on),
            _ => None,
        }
    }
}

macro_rules! numbers {
    ($($Type:ty: $kind:ident, $numbers:expr, |$it:ident| $get:expr, |$number:ident| $set:expr;)*) => {$(
        impl Scalar for $Type {
            const KIND: Kind = Kind::$kind;
            const NUMBERS: RangeInclusive<u64> = $numbers;
            fn to_value(&self) -> Value {
                let $it = *self;
                Value::Number($get)
            }
            fn from_value(value: Value) -> Option<$Type> {
                match value {
                    Value::Number($number) => $set,
                    _ => None,
                }
            }
        }
    )*};
}

numbers! {
    u8: Count, 0..=u8::MAX as u64, |it| u64::from(it), |number| u8::try_from(number).ok();
    u32: Count, 0..=u32::MAX as u64, |it| u64::from(it), |number| u32::try_from(number).ok();
    // Whole bytes per second: nothing else is counted in 64 bits.
    u64: ByteRate, 1..=u64::MAX / 8, |it| it, |number| Some(number);
    Duration: Duration, 0..=u64::MAX, |it| it.as_nanos(), |number| Some(Duration::from_nanos(number));
    Bytes: Bytes, 0..=u64::MAX, |it| it.0, |number| Some(Bytes(number));
    Rate: Rate, 1..=u64::MAX, |it| it.bit_per_s(), |number| Rate::from_bit_per_s(number);
}

impl<T: Scalar> Scalar for Option<T> {
    const KIND: Kind = T::KIND;
    const NUMBERS: RangeInclusive<u64> = T::NUMBERS;
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Absent, T::to_value)
    }
    fn from_value(value: Value) -> Option<Option<T>> {
        match value {
            Value::Absent => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// Bounds and units for rows.
pub(super) mod numbers {
    use core::ops::RangeInclusive;

    /// Above zero.
    pub const POSITIVE: RangeInclusive<u64> = 1..=u64::MAX;
    /// The most that a count of 32 bits can be.
    pub const COUNTS: u64 = u32::MAX as u64;
    pub const MS: u64 = 1_000_000;
    pub const SECOND: u64 = 1_000 * MS;
    pub const MIB: u64 = 1 << 20;
}

/// When a rule of Linux matters, of the end's configuration and its peer's.
pub(super) mod when {
    use crate::config::{Config, CongestionControlKind, HyStart};

    /// Both ends offer SACK.
    pub fn sack(own: &Config, peer: &Config) -> bool {
        own.recovery.sack && peer.recovery.sack
    }

    pub fn no_sack(own: &Config, peer: &Config) -> bool {
        !sack(own, peer)
    }

    /// Both ends offer timestamps.
    pub fn timestamps(own: &Config, peer: &Config) -> bool {
        own.send.timestamps && peer.send.timestamps
    }

    /// ACKs are withheld. Where none is, a route with `quickack` does the same.
    pub fn withheld(own: &Config, _: &Config) -> bool {
        own.receive.ack_every != 1 && !own.receive.ack_delay.is_zero()
    }

    /// The window follows losses; a controller that has a model of the path sets it by itself, here as there.
    pub fn windowed(own: &Config) -> bool {
        !own.congestion.control.owns_cwnd()
    }

    pub fn cubic(own: &Config, _: &Config) -> bool {
        own.congestion.control == CongestionControlKind::Cubic
    }

    /// The window follows losses, and not by CUBIC.
    pub fn reno(own: &Config, peer: &Config) -> bool {
        windowed(own) && !cubic(own, peer)
    }

    /// Slow start's growth is HyStart++'s own.
    pub fn grows_by_hystart(own: &Config) -> bool {
        own.congestion.control == CongestionControlKind::Cubic && own.congestion.hystart == HyStart::Rfc9406
    }
}

/// Makes enums of words: each variant with what it means, and as stack files spell it.
macro_rules! words {
    ($(
        $(#[doc = $doc:literal])*
        $Type:ident {
            $($(#[doc = $meaning:literal])* $Variant:ident = $name:literal $(formerly $old:literal)?,)+
        }
    )+) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Type {
            $($(#[doc = $meaning])* $Variant,)+
        }

        impl $Type {
            /// Each of them, in the order of their declaration.
            pub const ALL: &'static [$Type] = &[$($Type::$Variant),+];

            /// As stack files spell it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Type::$Variant => $name,)+
                }
            }
        }

        impl $crate::config::schema::Scalar for $Type {
            const KIND: $crate::config::Kind = $crate::config::Kind::Word(&[$(
                $crate::config::Word {
                    name: $name,
                    formerly: $crate::config::schema::first!($(Some($old),)? None),
                    meaning: &[$($meaning),*],
                }
            ),+]);
            fn to_value(&self) -> $crate::config::Value {
                $crate::config::Value::Word(self.name())
            }
            fn from_value(value: $crate::config::Value) -> Option<$Type> {
                $Type::ALL.iter().copied().find(|it| it.to_value() == value)
            }
        }
    )+};
}

/// A field of a configuration by the section that it stands in.
macro_rules! field {
    ($config:ident [] $field:ident) => {
        $config.$field
    };
    ($config:ident [$section:ident] $field:ident) => {
        $config.$section.$field
    };
}

/// The name of a section; empty at the top.
macro_rules! title {
    ([]) => {
        ""
    };
    ([$section:ident]) => {
        stringify!($section)
    };
}

/// The first of some expressions.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

/// Makes a section: the struct, its default, and the rows of the table of parameters.
///
/// A row is a field with its documentation, its type and its default. `as` gives its key where that is no name of Rust's, `or`
/// the word for its absence. Behind `=>` stand, in this order and where there is one:
///
/// - `from`, the standard or the system that it comes from;
/// - `within`, the numbers that it can have, and `workable`, those with which a transfer ends, in the unit of its kind;
/// - `was`, a former key; with `as`, of a switch whose position is a word now;
/// - `told`, how Linux is told to follow it, and how closely it does;
/// - `fixed`, what Linux does in any case, and for which values that is the same; after `where`, when it matters at all.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        struct $Section:ident $section:tt
        $(and $($(#[doc = $part_doc:literal])* $part:ident: $Part:ident,)+)?
        {
            $(
                $(#[doc = $meaning:literal])*
                $field:ident $(as $key:literal)? $(or $absent:literal)?: $Type:ty = $default:expr => {
                    from $source:literal;
                    $(within $within:expr;)?
                    $(workable $workable:expr;)?
                    $(was $old:literal $(as $position:literal $word:literal)?;)*
                    $(told $told:literal, $closely:literal;)?
                    $(fixed $agrees:expr, $(where $matters:expr,)? $does:literal;)*
                }
            )+
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $Section {
            $($(#[doc = $meaning])* pub $field: $Type,)+
            $($($(#[doc = $part_doc])* pub $part: $Part,)+)?
        }

        impl Default for $Section {
            fn default() -> $Section {
                $Section {
                    $($field: $default,)+
                    $($($part: $Part::default(),)+)?
                }
            }
        }

        pub(super) static PARAMETERS: &[$crate::config::Parameter] = {
            use $crate::config::schema::{Parameter, Scalar, field, first, title};
            &[$(Parameter {
                section: title!($section),
                name: first!($($key,)? stringify!($field)),
                kind: <$Type as Scalar>::KIND,
                absent: first!($(Some($absent),)? None),
                within: first!($($within,)? <$Type as Scalar>::NUMBERS),
                workable: first!($(Some($workable),)? None),
                meaning: &[$($meaning),*],
                source: $source,
                formerly: &[$($crate::config::FormerKey {
                    name: $old,
                    word: first!($(Some(($position, $word)),)? None),
                }),*],
                told: first!($(Some(($told, $closely)),)? None),
                fixed: &[$($crate::config::FixedByLinux {
                    does: $does,
                    agrees: |own, peer| {
                        let agrees: fn(&$Type) -> bool = $agrees;
                        let matters: fn(&$crate::config::Config, &$crate::config::Config) -> bool = first!($($matters,)? |_, _| true);
                        !matters(own, peer) || agrees(&field!(own $section $field))
                    },
                }),*],
                get: |config| Scalar::to_value(&field!(config $section $field)),
                set: |config, value| match Scalar::from_value(value) {
                    Some(value) => {
                        field!(config $section $field) = value;
                        true
                    }
                    None => false,
                },
            }),+]
        };
    };
}

pub(super) use {field, section, title};
pub(crate) use {first, words};
