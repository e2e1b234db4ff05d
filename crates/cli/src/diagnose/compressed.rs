//! Captures that are kept compressed: known by their first bytes, whatever the file is called.

use farpath_files::FileError;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// What `source` holds, decompressed where it is gzip or zstd.
///
/// Nothing is kept of it beyond the window of its compression, of which a zstd frame may ask for 100 MiB.
pub fn decompressed(source: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let first = source.fill_buf()?;
    Ok(if first.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(source))
    } else if first.starts_with(ZSTD) {
        Box::new(Zstd { frame: Some(begin(source)?) })
    } else {
        Box::new(source)
    })
}

/// The text of a file, decompressed, and no longer than a file that is read may be.
pub fn text_of(file: &Path) -> io::Result<String> {
    let most = farpath_files::max_file();
    let mut text = String::new();
    let source = Cursor::new(farpath_files::read(file)?);
    decompressed(source)?.take(most.0.saturating_add(1)).read_to_string(&mut text)?;
    match text.len() as u64 > most.0 {
        true => Err(FileError::TooLarge { most }.into()),
        false => Ok(text),
    }
}

/// The frames of a zstd file, one behind the other (RFC 8878 §3).
struct Zstd<R: Read> {
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = &mut self.frame {
            let read = frame.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let mut rest = self.frame.take().expect("it is there").into_inner();
            if !rest.fill_buf()?.is_empty() {
                self.frame = Some(begin(rest)?);
            }
        }
        Ok(0)
    }
}

/// A zstd frame that says nothing: a window of 1 KiB, and a last block of 0 B (RFC 8878 §3.1.1).
const EMPTY_FRAME: [u8; 9] = [0x28, 0xb5, 0x2f, 0xfd, 0, 0, 1, 0, 0];

/// The decoder of a frame.
///
/// A decoder of ruzstd 0.8 bounds the window of every frame but its first, so that each has the empty frame as its first.
fn begin<R: Read>(source: R) -> io::Result<StreamingDecoder<R, FrameDecoder>> {
    let mut decoder = FrameDecoder::new();
    decoder.init(EMPTY_FRAME.as_slice()).map_err(io::Error::other)?;
    StreamingDecoder::new_with_decoder(source, decoder).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        decompressed(io::Cursor::new(bytes))?.read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn gzip_zstd_and_neither_are_told_by_their_first_bytes() {
        let text = b"a capture, ".repeat(20_000);
        let gzip = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&text).and_then(|()| encoder.finish()).expect("in memory")
        };
        let zstd = || compress_to_vec(&text[..], CompressionLevel::Fastest);
        for whole in [text.clone(), gzip(), zstd()] {
            assert_eq!(read(whole).expect("it is read"), text);
        }
        // Several, one behind the other.
        for twice in [[gzip(), gzip()].concat(), [zstd(), zstd()].concat()] {
            assert_eq!(read(twice).expect("it is read"), text.repeat(2));
        }
        for whole in [gzip(), zstd()] {
            assert!(read(whole[..whole.len() / 2].to_vec()).is_err(), "cut off");
        }
        assert_eq!(read(Vec::new()).expect("nothing"), b"");
    }

    #[test]
    fn a_zstd_frame_asks_for_no_more_memory_than_it_may() {
        // Magic number, no flags, a window of 2^(10 + exponent) (RFC 8878 §3.1.1), and a last block of 1 B.
        let frame = |exponent: u8| [ZSTD, &[0, exponent << 3, 9, 0, 0, b'x']].concat();
        assert_eq!(read(frame(16)).expect("64 MiB"), b"x");
        for exponent in [17, 31] {
            let error = read(frame(exponent)).expect_err("128 MiB and more").to_string();
            assert!(error.contains("indow"), "{error}");
        }
    }
}
