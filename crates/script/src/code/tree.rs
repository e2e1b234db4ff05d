//! Statements and expressions of Python: read, and evaluated.

use super::Value;
use super::lexer::{Kind, Token, tokens};
use core::cmp::Ordering;
use std::collections::BTreeMap;

/// Deepest nesting of expressions.
const MAX_DEPTH: u32 = 24;
/// Longest text that an expression may make.
const MAX_TEXT: usize = 1 << 16;
/// Most names that a block may set.
const MAX_NAMES: usize = 256;

type Problem = (u32, String);

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Assert { condition: Expression, message: Option<Expression>, text: String },
    Assign(String, Expression),
    Print(Vec<Expression>),
    Expression(Expression),
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Constant(Value),
    Name(String),
    Formatted(Vec<(String, Option<(Expression, String)>)>),
    Tuple(Vec<Expression>),
    Call(String, Vec<Expression>),
    Not(Box<Expression>),
    Unary(&'static str, Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// `a < b < c`
    Chain(Box<Expression>, Vec<(&'static str, Expression)>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    If(Box<Expression>, Box<Expression>, Box<Expression>),
}

/// Statements, each with its line, from 0.
pub fn parse(text: &str) -> Result<Vec<(u32, Statement)>, Problem> {
    Parser { text, tokens: tokens(text)?, at: 0 }.statements()
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
}

impl Parser<'_> {
    fn kind(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |token| token.line)
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, Problem> {
        let found = match self.tokens.get(self.at) {
            None => "the end of the code".to_owned(),
            Some(token) if token.kind == Kind::EndOfStatement => "the end of the statement".to_owned(),
            Some(token) => format!("`{}`", &self.text[token.start..token.end]),
        };
        Err((self.line(), format!("expected {expected}, found {found}")))
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = matches!(self.kind(), Some(Kind::Symbol(own)) if *own == symbol);
        self.at += usize::from(found);
        found
    }

    fn eat_name(&mut self, name: &str) -> bool {
        let found = matches!(self.kind(), Some(Kind::Name(own)) if own == name);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, symbol: &str) -> Result<(), Problem> {
        if self.eat(symbol) { Ok(()) } else { self.wrong(&format!("`{symbol}`")) }
    }

    fn statements(&mut self) -> Result<Vec<(u32, Statement)>, Problem> {
        let mut statements = Vec::new();
        loop {
            while self.kind() == Some(&Kind::EndOfStatement) {
                self.at += 1;
            }
            if self.kind().is_none() {
                return Ok(statements);
            }
            let line = self.line();
            let statement = self.statement()?;
            statements.push((line, statement));
            if !matches!(self.kind(), None | Some(Kind::EndOfStatement)) {
                return self.wrong("the end of the statement");
            }
        }
    }

    fn statement(&mut self) -> Result<Statement, Problem> {
        if self.eat_name("assert") {
            let start = self.at;
            let condition = self.expression(0)?;
            let text = self.source(start, self.at);
            let message = if self.eat(",") { Some(self.tuple(0)?) } else { None };
            return Ok(Statement::Assert { condition, message, text });
        }
        if let Some(Kind::Name(name)) = self.kind().cloned() {
            match self.tokens.get(self.at + 1).map(|token| &token.kind) {
                Some(Kind::Symbol("=")) => {
                    self.at += 2;
                    return Ok(Statement::Assign(name, self.tuple(0)?));
                }
                Some(Kind::Symbol("(")) if name == "print" => {
                    self.at += 2;
                    return Ok(Statement::Print(self.list(")", 0)?));
                }
                _ => {}
            }
            const BEYOND: [&str; 14] = [
                "import", "from", "for", "while", "if", "def", "class", "try", "with", "lambda", "return",
                "raise", "del", "global",
            ];
            if BEYOND.contains(&name.as_str()) {
                return self.wrong("an `assert`, an assignment, `print()` or an expression");
            }
        }
        Ok(Statement::Expression(self.tuple(0)?))
    }

    fn source(&self, from: usize, to: usize) -> String {
        match (self.tokens.get(from), to.checked_sub(1).and_then(|last| self.tokens.get(last))) {
            (Some(first), Some(last)) if first.start < last.end => {
                let words = self.text[first.start..last.end].split_whitespace().filter(|word| *word != "\\");
                words.collect::<Vec<_>>().join(" ")
            }
            _ => String::new(),
        }
    }

    /// An expression, or several with commas between.
    fn tuple(&mut self, depth: u32) -> Result<Expression, Problem> {
        let first = self.expression(depth)?;
        if !self.eat(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while !matches!(self.kind(), None | Some(Kind::EndOfStatement | Kind::Symbol(")" | "]"))) {
            items.push(self.expression(depth)?);
            if !self.eat(",") {
                break;
            }
        }
        Ok(Expression::Tuple(items))
    }

    fn list(&mut self, close: &str, depth: u32) -> Result<Vec<Expression>, Problem> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(self.expression(depth)?);
            if !self.eat(",") {
                self.need(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn expression(&mut self, depth: u32) -> Result<Expression, Problem> {
        if depth > MAX_DEPTH {
            return self.wrong(&format!("{MAX_DEPTH} levels of brackets at most"));
        }
        let value = self.disjunction(depth)?;
        if !self.eat_name("if") {
            return Ok(value);
        }
        let condition = self.disjunction(depth)?;
        if !self.eat_name("else") {
            return self.wrong("`else`");
        }
        let other = self.expression(depth + 1)?;
        Ok(Expression::If(Box::new(condition), Box::new(value), Box::new(other)))
    }

    fn disjunction(&mut self, depth: u32) -> Result<Expression, Problem> {
        let mut parts = vec![self.conjunction(depth)?];
        while self.eat_name("or") {
            parts.push(self.conjunction(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Or(parts) })
    }

    fn conjunction(&mut self, depth: u32) -> Result<Expression, Problem> {
        let mut parts = vec![self.negation(depth)?];
        while self.eat_name("and") {
            parts.push(self.negation(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::And(parts) })
    }

    fn negation(&mut self, depth: u32) -> Result<Expression, Problem> {
        if depth > MAX_DEPTH {
            return self.wrong(&format!("{MAX_DEPTH} levels at most"));
        }
        if self.eat_name("not") {
            return Ok(Expression::Not(Box::new(self.negation(depth + 1)?)));
        }
        let first = self.binary(0, depth)?;
        let mut rest = Vec::new();
        loop {
            let operator = match self.kind() {
                Some(Kind::Symbol(symbol @ ("<" | ">" | "<=" | ">=" | "==" | "!="))) => *symbol,
                Some(Kind::Name(name)) if name == "in" => "in",
                Some(Kind::Name(name)) if name == "is" => "is",
                Some(Kind::Name(name)) if name == "not" => "not in",
                _ => break,
            };
            self.at += 1;
            if operator == "not in" && !self.eat_name("in") {
                return self.wrong("`in` behind `not`");
            }
            rest.push((operator, self.binary(0, depth)?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Chain(Box::new(first), rest) })
    }

    /// Operators by how tightly they bind, the loosest first.
    fn binary(&mut self, level: usize, depth: u32) -> Result<Expression, Problem> {
        const LEVELS: [&[&str]; 6] =
            [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "//", "/", "%"]];
        let Some(operators) = LEVELS.get(level) else { return self.unary(depth) };
        let mut one = self.binary(level + 1, depth)?;
        while let Some(Kind::Symbol(symbol)) = self.kind()
            && operators.contains(symbol)
        {
            let symbol = *symbol;
            self.at += 1;
            one = Expression::Binary(symbol, Box::new(one), Box::new(self.binary(level + 1, depth)?));
        }
        Ok(one)
    }

    fn unary(&mut self, depth: u32) -> Result<Expression, Problem> {
        if depth > MAX_DEPTH {
            return self.wrong(&format!("{MAX_DEPTH} levels at most"));
        }
        for symbol in ["-", "+", "~"] {
            if self.eat(symbol) {
                return Ok(Expression::Unary(symbol, Box::new(self.unary(depth + 1)?)));
            }
        }
        let base = self.atom(depth)?;
        if self.eat("**") {
            return Ok(Expression::Binary("**", Box::new(base), Box::new(self.unary(depth + 1)?)));
        }
        Ok(base)
    }

    fn atom(&mut self, depth: u32) -> Result<Expression, Problem> {
        const EXPECTED: &str = "a number, a name, a text or `(`";
        let Some(kind) = self.kind().cloned() else { return self.wrong(EXPECTED) };
        let line = self.line();
        match kind {
            Kind::Int(value) => {
                self.at += 1;
                Ok(Expression::Constant(Value::Int(value)))
            }
            Kind::Float(value) => {
                self.at += 1;
                Ok(Expression::Constant(Value::Float(value)))
            }
            Kind::Text(..) => {
                let mut parts = Vec::new();
                // Texts side by side are one.
                while let Some(Kind::Text(text, formatted)) = self.kind().cloned() {
                    self.at += 1;
                    if formatted {
                        parts.extend(formatted_parts(&text, line, depth)?);
                    } else {
                        parts.push((text, None));
                    }
                }
                match &parts[..] {
                    [(text, None)] => Ok(Expression::Constant(Value::Text(text.clone()))),
                    _ => Ok(Expression::Formatted(parts)),
                }
            }
            Kind::Name(name) => {
                self.at += 1;
                match name.as_str() {
                    "True" => return Ok(Expression::Constant(Value::Bool(true))),
                    "False" => return Ok(Expression::Constant(Value::Bool(false))),
                    "None" => return Ok(Expression::Constant(Value::None)),
                    _ => {}
                }
                if self.eat("(") {
                    return Ok(Expression::Call(name, self.list(")", depth + 1)?));
                }
                if matches!(self.kind(), Some(Kind::Symbol("." | "["))) {
                    return self.wrong("an operator: attributes and indices are not evaluated");
                }
                Ok(Expression::Name(name))
            }
            Kind::Symbol("(") => {
                self.at += 1;
                if self.eat(")") {
                    return Ok(Expression::Tuple(Vec::new()));
                }
                let inside = self.tuple(depth + 1)?;
                self.need(")")?;
                Ok(inside)
            }
            Kind::Symbol("[") => {
                self.at += 1;
                Ok(Expression::Tuple(self.list("]", depth + 1)?))
            }
            Kind::Symbol(_) | Kind::EndOfStatement => self.wrong(EXPECTED),
        }
    }
}

type FormattedPart = (String, Option<(Expression, String)>);

/// The parts of an f-string: text, and what stands in braces behind it with its format.
fn formatted_parts(text: &str, line: u32, depth: u32) -> Result<Vec<FormattedPart>, Problem> {
    if depth > 2 {
        return Err((line, "expected no f-string within an f-string".to_owned()));
    }
    let mut parts = Vec::new();
    let (mut before, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("{{") || rest.starts_with("}}") {
            before.push(c);
            rest = &rest[2..];
        } else if c == '{' {
            let Some(end) = rest.find('}') else {
                return Err((line, "expected `}` within the f-string".to_owned()));
            };
            let inside = &rest[1..end];
            let (code, format) = inside.rsplit_once(':').unwrap_or((inside, ""));
            let (code, named) = match code.trim_end().strip_suffix('=') {
                Some(code) => (code, true),
                None => (code, false),
            };
            if named {
                before.push_str(code);
                before.push('=');
            }
            let mut parser =
                Parser { text: code, tokens: tokens(code).map_err(|(_, problem)| (line, problem))?, at: 0 };
            let expression = parser.expression(depth + 1).map_err(|(_, problem)| (line, problem))?;
            if parser.kind().is_some() {
                return Err((line, format!("expected an expression in braces, found `{code}`")));
            }
            parts.push((core::mem::take(&mut before), Some((expression, format.to_owned()))));
            rest = &rest[end + 1..];
        } else {
            before.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    parts.push((before, None));
    Ok(parts)
}

/// What evaluates expressions, with what was assigned.
pub struct Evaluation<'a> {
    lookup: &'a dyn Fn(&str) -> Option<Value>,
    names: BTreeMap<String, Value>,
}

impl<'a> Evaluation<'a> {
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<Value>) -> Evaluation<'a> {
        Evaluation { lookup, names: BTreeMap::new() }
    }

    pub fn set(&mut self, name: String, value: Value) -> Result<(), String> {
        if self.names.len() == MAX_NAMES {
            return Err(format!("expected {MAX_NAMES} names at most"));
        }
        self.names.insert(name, value);
        Ok(())
    }

    pub fn value(&self, expression: &Expression) -> Result<Value, String> {
        Ok(match expression {
            Expression::Constant(value) => value.clone(),
            Expression::Name(name) => match self.names.get(name).cloned().or_else(|| (self.lookup)(name)) {
                Some(value) => value,
                None => return Err(format!("expected a name that is known here, found `{name}`")),
            },
            Expression::Formatted(parts) => {
                let mut text = String::new();
                for (before, value) in parts {
                    text.push_str(before);
                    if let Some((expression, format)) = value {
                        text.push_str(&format_value(&self.value(expression)?, format)?);
                    }
                    if text.len() > MAX_TEXT {
                        return Err(format!("expected a text of {MAX_TEXT} B at most"));
                    }
                }
                Value::Text(text)
            }
            Expression::Tuple(items) => {
                Value::Tuple(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)
            }
            Expression::Call(name, arguments) => {
                let arguments =
                    arguments.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?;
                call(name, &arguments)?
            }
            Expression::Not(inner) => Value::Bool(!self.value(inner)?.is_true()),
            Expression::Unary(symbol, inner) => unary(symbol, &self.value(inner)?)?,
            Expression::Binary(symbol, one, other) => binary(symbol, &self.value(one)?, &self.value(other)?)?,
            Expression::Chain(first, rest) => {
                let mut before = self.value(first)?;
                for (operator, expression) in rest {
                    let value = self.value(expression)?;
                    if !compare(operator, &before, &value)? {
                        return Ok(Value::Bool(false));
                    }
                    before = value;
                }
                Value::Bool(true)
            }
            Expression::And(parts) | Expression::Or(parts) => {
                let ends = matches!(expression, Expression::Or(_));
                let mut last = Value::None;
                for part in parts {
                    last = self.value(part)?;
                    if last.is_true() == ends {
                        break;
                    }
                }
                last
            }
            Expression::If(condition, value, other) => {
                self.value(if self.value(condition)?.is_true() { value } else { other })?
            }
        })
    }
}

fn compare(operator: &str, one: &Value, other: &Value) -> Result<bool, String> {
    match operator {
        "==" | "is" => return Ok(one.equals(other)),
        "!=" => return Ok(!one.equals(other)),
        "in" | "not in" => {
            let found = match (one, other) {
                (_, Value::Tuple(items)) => items.iter().any(|item| item.equals(one)),
                (Value::Text(part), Value::Text(whole)) => whole.contains(part.as_str()),
                _ => return Err(format!("expected a tuple behind `in`, found {}", other.kind())),
            };
            return Ok(found == (operator == "in"));
        }
        _ => {}
    }
    let order = one.order(other).ok_or_else(|| {
        format!("expected values that can be compared, found {} and {}", one.kind(), other.kind())
    })?;
    Ok(match operator {
        "<" => order == Ordering::Less,
        ">" => order == Ordering::Greater,
        "<=" => order != Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

fn unary(symbol: &str, value: &Value) -> Result<Value, String> {
    let result = match (symbol, value.int(), value.float()) {
        ("-", Some(value), _) => value.checked_neg().map(Value::Int),
        ("+", Some(value), _) => Some(Value::Int(value)),
        ("~", Some(value), _) => Some(Value::Int(!value)),
        ("-", None, Some(value)) => Some(Value::Float(-value)),
        ("+", None, Some(value)) => Some(Value::Float(value)),
        _ => None,
    };
    result.ok_or_else(|| format!("expected a number behind `{symbol}`, found {}", value.kind()))
}

fn binary(symbol: &str, one: &Value, other: &Value) -> Result<Value, String> {
    if let (Value::Text(format), "%") = (one, symbol) {
        let values = match other {
            Value::Tuple(values) => values.clone(),
            value => vec![value.clone()],
        };
        return percent(format, &values).map(Value::Text);
    }
    if let (Value::Text(one), Value::Text(other), "+") = (one, other, symbol) {
        if one.len() + other.len() > MAX_TEXT {
            return Err(format!("expected a text of {MAX_TEXT} B at most"));
        }
        return Ok(Value::Text(format!("{one}{other}")));
    }
    let result = match (one.int(), other.int()) {
        (Some(one), Some(other)) => ints(symbol, one, other)?,
        _ => match (one.float(), other.float()) {
            (Some(one), Some(other)) => floats(symbol, one, other),
            _ => None,
        },
    };
    result.ok_or_else(|| {
        format!(
            "expected numbers for which `{symbol}` can be computed, found {} and {}",
            one.kind(),
            other.kind()
        )
    })
}

fn ints(symbol: &str, one: i128, other: i128) -> Result<Option<Value>, String> {
    if matches!(symbol, "/" | "//" | "%") && other == 0 {
        return Err("expected a divisor that is not 0".to_owned());
    }
    let shift = u32::try_from(other).ok().filter(|&bits| bits < 64);
    let whole = match symbol {
        "+" => one.checked_add(other),
        "-" => one.checked_sub(other),
        "*" => one.checked_mul(other),
        // Python rounds down.
        "//" => one.checked_div_euclid(other).map(|quotient| {
            let exact = one.checked_rem(other) == Some(0);
            if other < 0 && !exact { quotient - 1 } else { quotient }
        }),
        "%" => one
            .checked_rem(other)
            .map(|rest| if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest }),
        "<<" => shift.and_then(|bits| one.checked_mul(1 << bits)),
        ">>" => shift.map(|bits| one >> bits),
        "&" => Some(one & other),
        "|" => Some(one | other),
        "^" => Some(one ^ other),
        "**" => shift.and_then(|exponent| one.checked_pow(exponent)),
        _ => return Ok(floats(symbol, one as f64, other as f64)),
    };
    Ok(whole.map(Value::Int))
}

fn floats(symbol: &str, one: f64, other: f64) -> Option<Value> {
    Some(Value::Float(match symbol {
        "+" => one + other,
        "-" => one - other,
        "*" => one * other,
        "/" if other != 0.0 => one / other,
        "//" if other != 0.0 => (one / other).floor(),
        "%" if other != 0.0 => one - other * (one / other).floor(),
        _ => return None,
    }))
}

fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let items = match arguments {
        [Value::Tuple(items)] => items,
        other => other,
    };
    let result = match (name, arguments) {
        ("abs", [value]) => match value.int() {
            Some(value) => value.checked_abs().map(Value::Int),
            None => value.float().map(|value| Value::Float(value.abs())),
        },
        ("int", [value]) => match value {
            Value::Text(text) => text.trim().parse().ok().map(Value::Int),
            value => value.int().or_else(|| value.float().map(|value| value as i128)).map(Value::Int),
        },
        ("float", [value]) => value.float().map(Value::Float),
        ("round", [value]) => value.float().map(|value| {
            let whole = value.trunc();
            let rest = (value - whole).abs();
            // Halves go to the even number.
            let away = rest > 0.5 || rest == 0.5 && whole % 2.0 != 0.0;
            Value::Int(whole as i128 + if away { value.signum() as i128 } else { 0 })
        }),
        ("bool", [value]) => Some(Value::Bool(value.is_true())),
        ("str" | "repr", [value]) => Some(Value::Text(value.to_string())),
        ("hex", [value]) => value.int().map(|value| Value::Text(format!("{value:#x}"))),
        ("len", [Value::Text(text)]) => Some(Value::Int(text.chars().count() as i128)),
        ("len", [Value::Tuple(items)]) => Some(Value::Int(items.len() as i128)),
        ("sum", [Value::Tuple(_)]) => {
            let mut sum = Value::Int(0);
            for item in items {
                sum = binary("+", &sum, item)?;
            }
            Some(sum)
        }
        ("min" | "max", _) if !items.is_empty() => {
            let wanted = if name == "min" { Ordering::Less } else { Ordering::Greater };
            let mut best = items[0].clone();
            for item in items {
                if item.order(&best) == Some(wanted) {
                    best = item.clone();
                }
            }
            Some(best)
        }
        _ => None,
    };
    result.ok_or_else(|| {
        format!("expected abs, bool, float, hex, int, len, max, min, round, str or sum of what they take, found `{name}()`")
    })
}

/// `'%d' % value`
fn percent(format: &str, values: &[Value]) -> Result<String, String> {
    let mut text = String::new();
    let mut values = values.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(len) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '%') else {
            return Err("expected a format behind `%`".to_owned());
        };
        let letter = rest[len..].chars().next().unwrap_or('%');
        let how = &rest[..len];
        rest = &rest[len + letter.len_utf8()..];
        if letter == '%' {
            text.push('%');
            continue;
        }
        let Some(value) = values.next() else {
            return Err("expected as many values as formats behind `%`".to_owned());
        };
        let letter = match letter {
            'i' | 'u' => 'd',
            'r' => 's',
            other => other,
        };
        text.push_str(&format_value(value, &format!("{how}{letter}"))?);
        if text.len() > MAX_TEXT {
            return Err(format!("expected a text of {MAX_TEXT} B at most"));
        }
    }
    if values.next().is_some() {
        return Err("expected as many formats as values behind `%`".to_owned());
    }
    text.push_str(rest);
    Ok(text)
}

/// A value in a format such as `d`, `05d`, `x`, `.3f`, `s` or nothing.
fn format_value(value: &Value, format: &str) -> Result<String, String> {
    let letter = format.chars().last().filter(char::is_ascii_alphabetic);
    let how = &format[..format.len() - letter.map_or(0, char::len_utf8)];
    let (width, digits) = how.split_once('.').unwrap_or((how, ""));
    let zeros = width.starts_with('0');
    let left = width.starts_with(['-', '<']);
    let width = width.trim_start_matches(['-', '<', '>', '+', ' ', '#']);
    let bad = || format!("expected a format that is known here, found `{format}`");
    let width: usize = if width.is_empty() { 0 } else { width.parse().map_err(|_| bad())? };
    let digits: Option<usize> =
        if digits.is_empty() { None } else { Some(digits.parse().map_err(|_| bad())?) };
    if width > 200 || digits.is_some_and(|digits| digits > 30) {
        return Err(bad());
    }
    let whole = || value.int().or_else(|| value.float().map(|value| value as i128));
    let text = match letter {
        None | Some('s') => match (value, digits) {
            (Value::Float(value), Some(digits)) => format!("{value:.digits$}"),
            _ => value.to_string(),
        },
        Some('d') => whole().map(|value| value.to_string()).ok_or_else(bad)?,
        Some('x') => whole().map(|value| format!("{value:x}")).ok_or_else(bad)?,
        Some('X') => whole().map(|value| format!("{value:X}")).ok_or_else(bad)?,
        Some('f' | 'F' | 'g') => {
            let digits = digits.unwrap_or(6);
            value.float().map(|value| format!("{value:.digits$}")).ok_or_else(bad)?
        }
        Some('e') => value.float().map(|value| format!("{value:e}")).ok_or_else(bad)?,
        Some(_) => return Err(bad()),
    };
    Ok(if zeros {
        format!("{text:0>width$}")
    } else if left || matches!(value, Value::Text(_)) {
        format!("{text:<width$}")
    } else {
        format!("{text:>width$}")
    })
}
