//! Values of Python, as far as assertions need them.

use core::cmp::Ordering;
use core::fmt;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `None`
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(String),
    /// A tuple or list.
    Tuple(Vec<Value>),
}

impl Value {
    /// Whether Python takes it for true.
    pub fn is_true(&self) -> bool {
        match self {
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Tuple(items) => !items.is_empty(),
        }
    }

    /// As an integer, where it is one.
    pub fn int(&self) -> Option<i128> {
        match self {
            Value::Bool(value) => Some(i128::from(*value)),
            Value::Int(value) => Some(*value),
            Value::None | Value::Float(_) | Value::Text(_) | Value::Tuple(_) => None,
        }
    }

    /// As a floating-point number, where it is a number.
    pub fn float(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            other => other.int().map(|value| value as f64),
        }
    }

    /// Kind, in Python's word.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) => "str",
            Value::Tuple(_) => "tuple",
        }
    }

    /// Order of two values; `None` where Python has none.
    pub fn order(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
            (Value::Tuple(one), Value::Tuple(other)) => {
                for (one, other) in one.iter().zip(other) {
                    match one.order(other)? {
                        Ordering::Equal => {}
                        order => return Some(order),
                    }
                }
                Some(one.len().cmp(&other.len()))
            }
            _ => match (self.int(), other.int()) {
                (Some(one), Some(other)) => Some(one.cmp(&other)),
                _ => self.float()?.partial_cmp(&other.float()?),
            },
        }
    }

    /// Whether both are the same, as `==` has it.
    pub fn equals(&self, other: &Value) -> bool {
        matches!((self, other), (Value::None, Value::None)) || self.order(other) == Some(Ordering::Equal)
    }

    /// As `repr()` writes it.
    fn repr(&self) -> String {
        match self {
            Value::Text(text) => format!("'{text}'"),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => write!(f, "None"),
            Value::Bool(true) => write!(f, "True"),
            Value::Bool(false) => write!(f, "False"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e16 => write!(f, "{value:.1}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(text) => write!(f, "{text}"),
            Value::Tuple(items) => {
                let items: Vec<_> = items.iter().map(Value::repr).collect();
                let only = if items.len() == 1 { "," } else { "" };
                write!(f, "({}{only})", items.join(", "))
            }
        }
    }
}
