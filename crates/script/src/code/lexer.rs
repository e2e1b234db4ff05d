//! Words of Python.

/// A word, with the line that it stands in, from 0, and where it begins and ends in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub line: u32,
    pub start: usize,
    pub end: usize,
}

/// What a word is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Name(String),
    Int(i128),
    Float(f64),
    /// A text, and whether it is an f-string.
    Text(String, bool),
    Symbol(&'static str),
    /// End of a line outside of brackets, or `;`.
    EndOfStatement,
}

const SYMBOLS: [&str; 28] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^",
    "~", "(", ")", "[", "]", ",", ".", ":", "{",
];

/// Most words of one block.
const MAX_TOKENS: usize = 10_000;

/// The words of a block.
pub fn tokens(text: &str) -> Result<Vec<Token>, (u32, String)> {
    let mut tokens = Vec::new();
    let (mut at, mut line, mut depth) = (0, 0, 0_u32);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let start = at;
        if tokens.len() == MAX_TOKENS {
            return Err((line, format!("expected {MAX_TOKENS} words at most in a block of code")));
        }
        let mut push = |kind, len: usize| tokens.push(Token { kind, line, start, end: start + len });
        if c == '\n' {
            if depth == 0 {
                push(Kind::EndOfStatement, 1);
            }
            (at, line) = (at + 1, line + 1);
        } else if c.is_whitespace() {
            at += c.len_utf8();
        } else if c == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if c == ';' {
            push(Kind::EndOfStatement, 1);
            at += 1;
        } else if let Some(behind) =
            rest.strip_prefix('\\').filter(|it| it.trim_start_matches([' ', '\t', '\r']).starts_with('\n'))
        {
            at += 2 + behind.find('\n').unwrap_or(0);
            line += 1;
        } else if let Some((formatted, quote)) = begins_text(rest) {
            let open = rest.find(quote).unwrap_or(0) + quote.len();
            let Some((content, len)) = text_until(&rest[open..], quote) else {
                return Err((line, "expected a quotation mark at the end of a text".to_owned()));
            };
            push(Kind::Text(content, formatted), open + len);
            line += rest[..open + len].matches('\n').count() as u32;
            at += open + len;
        } else if c.is_ascii_digit() || c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let len = number_len(rest);
            let word = rest[..len].replace('_', "");
            let kind = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
                Some(digits) => i128::from_str_radix(digits, 16).ok().map(Kind::Int),
                None if word.contains(['.', 'e', 'E']) => word.parse().ok().map(Kind::Float),
                None => word.parse().ok().map(Kind::Int),
            };
            let Some(kind) = kind else { return Err((line, format!("expected a number, found `{word}`"))) };
            push(kind, len);
            at += len;
        } else if c.is_alphabetic() || c == '_' {
            let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            push(Kind::Name(rest[..len].to_owned()), len);
            at += len;
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            match *symbol {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            push(Kind::Symbol(symbol), symbol.len());
            at += symbol.len();
        } else {
            return Err((line, format!("expected Python, found `{}`", c.escape_default())));
        }
    }
    Ok(tokens)
}

/// Whether a text begins, an f-string or another, and by which quotation mark.
fn begins_text(rest: &str) -> Option<(bool, &'static str)> {
    let formatted = rest.starts_with(['f', 'F']);
    let rest = if formatted { &rest[1..] } else { rest };
    ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| rest.starts_with(quote))
        .map(|quote| (formatted, quote))
}

/// A text up to `quote`, and how long it is with that.
fn text_until(rest: &str, quote: &str) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, c)) = characters.next() {
        if rest[at..].starts_with(quote) {
            return Some((content, at + quote.len()));
        }
        if c != '\\' {
            content.push(c);
            continue;
        }
        match characters.next()?.1 {
            'n' => content.push('\n'),
            't' => content.push('\t'),
            '\n' => {}
            other => content.push(other),
        }
    }
    None
}

fn number_len(rest: &str) -> usize {
    if rest.starts_with("0x") || rest.starts_with("0X") {
        return rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    }
    let mut before = ' ';
    for (at, c) in rest.char_indices() {
        let exponent_sign = matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
        if !(c.is_ascii_digit() || matches!(c, '.' | '_' | 'e' | 'E') || exponent_sign) {
            return at;
        }
        before = c;
    }
    rest.len()
}
