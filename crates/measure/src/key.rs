//! The key that both hosts may share, and how each proves to the other that it has it: HMAC-SHA256 (RFC 2104) over what
//! both have just drawn. It says who begins a measurement. It hides nothing and does not protect what follows from
//! somebody on the path who changes it.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Sha256;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// Shortest key. `head -c 32 /dev/urandom | base64` makes one of 44.
const LEAST: usize = 16;

/// What both hosts know.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("--key: cannot read {}: {source}", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Anybody would guess it.
    #[error(
        "--key: {}: expected a key of {LEAST} bytes at least, found {found}; `head -c 32 /dev/urandom | base64` makes one",
        file.display()
    )]
    Short {
        /// Which.
        file: PathBuf,
        /// Bytes, white space at the ends left out.
        found: usize,
    },
}

impl Key {
    /// Reads a file. White space at its beginning and end is no part of the key.
    ///
    /// # Errors
    /// It cannot be read, or holds too little.
    pub fn read(file: &Path) -> Result<Key, KeyError> {
        let text =
            farpath_files::read(file).map_err(|source| KeyError::Read { file: file.to_owned(), source })?;
        let key = text.trim_ascii();
        if key.len() < LEAST {
            return Err(KeyError::Short { file: file.to_owned(), found: key.len() });
        }
        Ok(Key(key.to_vec()))
    }

    /// That `who` has this key, to somebody who drew `theirs`, having drawn `ours`.
    pub fn prove(&self, who: Who, ours: &Challenge, theirs: &Challenge) -> Proof {
        Proof(self.mac(who, ours, theirs).finalize().into_bytes().into())
    }

    /// Whether `who`, which drew `theirs`, has this key. It takes as long wherever a wrong proof is wrong.
    pub fn accepts(&self, proof: &Proof, who: Who, ours: &Challenge, theirs: &Challenge) -> bool {
        self.mac(who, theirs, ours).verify_slice(&proof.0).is_ok()
    }

    fn mac(&self, who: Who, its: &Challenge, others: &Challenge) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        // Who: else a host could be shown its own proof.
        mac.update(match who {
            Who::Local => b"farpath near",
            Who::Peer => b"farpath far.",
        });
        mac.update(&its.0);
        mac.update(&others.0);
        mac
    }
}

/// Not its bytes: what is printed is read by others.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// What is wrong with who may read the file of a key; `None` where nothing is.
pub fn key_is_open(file: &Path) -> Option<String> {
    let mode = fs::metadata(file).ok()?.permissions().mode();
    (mode & 0o077 != 0)
        .then(|| format!("--key: {}: others on this host may read it: `chmod 600` keeps it", file.display()))
}

/// Which of the two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The one that measures.
    Local,
    /// The one that answers.
    Peer,
}

/// Drawn anew for each connection, so that no proof is good for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge(pub [u8; 32]);

/// That a host has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof(pub [u8; 32]);

/// Random bytes from the kernel.
///
/// # Errors
/// It has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

impl Serialize for Challenge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(&self.0))
    }
}

impl Serialize for Proof {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Challenge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Challenge, D::Error> {
        bytes(deserializer).map(Challenge)
    }
}

impl<'de> Deserialize<'de> for Proof {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Proof, D::Error> {
        bytes(deserializer).map(Proof)
    }
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| de::Error::custom("expected 64 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &[u8]) -> Key {
        Key(bytes.to_vec())
    }

    #[test]
    fn a_proof_is_good_for_one_connection_one_key_and_one_of_the_two() {
        let (local, peer, other) = (Challenge([1; 32]), Challenge([2; 32]), Challenge([3; 32]));
        let ours = key(b"a key of ours, quite long");
        let proof = ours.prove(Who::Local, &local, &peer);
        assert!(ours.accepts(&proof, Who::Local, &peer, &local));
        assert!(!ours.accepts(&proof, Who::Peer, &peer, &local), "reflected");
        assert!(!ours.accepts(&proof, Who::Local, &other, &local), "replayed");
        assert!(!key(b"another key, just as long").accepts(&proof, Who::Local, &peer, &local));
        let mut changed = proof;
        changed.0[31] ^= 1;
        assert!(!ours.accepts(&changed, Who::Local, &peer, &local));
    }

    /// RFC 4231 §4.3, so that other programs can make the same proof.
    #[test]
    fn the_code_is_that_of_rfc_4231() {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").expect("any length");
        mac.update(b"what do ya want for nothing?");
        let code = HEXLOWER.encode(&mac.finalize().into_bytes());
        assert_eq!(code, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_key_is_read_without_the_end_of_its_line_and_not_when_it_is_short() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        fs::write(&file, "0123456789abcdef\n").expect("written");
        assert_eq!(Key::read(&file).expect("long enough").0, b"0123456789abcdef");
        fs::write(&file, "0123456789abcde \n").expect("written");
        let error = Key::read(&file).expect_err("too short").to_string();
        assert!(error.contains("16 bytes at least, found 15"), "{error}");
        assert!(Key::read(&folder.path().join("none")).is_err());
        assert_eq!(format!("{:?}", key(b"secret")), "Key(..)");
    }
}
