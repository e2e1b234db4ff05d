//! What a connection or a datagram shows so that it is known whose it is.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use farpath_units::Duration;
use std::fmt;
use std::str::FromStr;

/// How long a connection may take to show its token before it is closed.
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
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// No token: expected 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 32 hexadecimal digits")]
pub struct ParseTokenError;

impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Token, ParseTokenError> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| ParseTokenError)?;
        bytes.try_into().map(Token).map_err(|_| ParseTokenError)
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
