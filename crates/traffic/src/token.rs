//! What a connection or a datagram shows so that it is known whose it is.

use farpath_units::Duration;
use std::fmt;
use std::str::FromStr;

/// How long a connection may take to show its token before the next one is looked at.
pub(crate) const TOKEN_WITHIN: Duration = Duration::from_secs(5);

/// Sixteen bytes that nobody guesses. Comparing two takes as long wherever they differ.
#[derive(Clone, Copy)]
pub struct Token(pub [u8; Token::LEN]);

impl Token {
    /// Bytes of one.
    pub const LEN: usize = 16;

    /// As they are sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

impl Eq for Token {}

/// Not its bytes: what is printed is read by others.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Hexadecimal.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// No token: expected 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 32 hexadecimal digits")]
pub struct ParseTokenError;

impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Token, ParseTokenError> {
        let mut bytes = [0; Token::LEN];
        if text.len() != 2 * Token::LEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ParseTokenError);
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| ParseTokenError)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| ParseTokenError)?;
        }
        Ok(Token(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_it_is_printed_as_and_hidden_from_debug() {
        let token = Token(*b"0123456789abcdef");
        assert_eq!(token.to_string().parse(), Ok(token));
        assert_ne!(token, Token(*b"0123456789abcdeF"));
        assert_eq!(format!("{token:?}"), "Token(..)");
        for bad in ["", "00", "zz23456789abcdef0123456789abcdef", "+123456789abcdef0123456789abcdef"] {
            assert_eq!(bad.parse::<Token>(), Err(ParseTokenError), "{bad}");
        }
    }
}
