//! One column of some rows: gathered from them, encoded as a page of a Parquet file, and put back.

use super::bits;
use super::delta::{self, Width};
use crate::schema::{Cells, Nullable, Row};
use bytes::Bytes;
use parquet::basic::Encoding;

/// A page: what stands behind its header in the file.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub bytes: Bytes,
    pub encoding: Encoding,
    /// Cells: rows, but for lists, where each item counts.
    pub cells: usize,
}

/// The cells of a column, by kind.
#[derive(Debug, Clone)]
pub(crate) enum Gathered {
    Numbers(Vec<u64>),
    MaybeNumbers(Nullable),
    /// Words of a fixed list, so many bits each, by their place there.
    Words(Vec<u8>),
    Bools(Vec<u8>),
    /// 1 where there is a text; length and bytes of each.
    MaybeTexts {
        present: Vec<u8>,
        texts: Vec<u8>,
    },
    /// 1 where a list goes on; 1 where there is an item; the items.
    Ranges {
        again: Vec<u8>,
        present: Vec<u8>,
        starts: Vec<u64>,
        ends: Vec<u64>,
    },
}

/// Levels, 0 or 1, take one bit.
const LEVEL: u32 = 1;

/// Turns rows into columns, behind those that `columns` has.
pub fn gather<R: Row>(rows: &[R], columns: &mut Vec<Gathered>) {
    if columns.is_empty() {
        columns.extend(R::COLUMNS.iter().map(|column| Gathered::new(&column.cells)));
    }
    for (column, gathered) in R::COLUMNS.iter().zip(columns) {
        gathered.gather(&column.cells, rows);
    }
}

/// Turns columns into pages and empties them.
pub fn encode<R: Row>(columns: &mut [Gathered]) -> Vec<Page> {
    let mut pages = Vec::with_capacity(columns.len() + 1);
    let mut bytes = Vec::new();
    for (column, gathered) in R::COLUMNS.iter().zip(columns) {
        gathered.encode(&column.cells, &mut bytes, &mut pages);
        gathered.clear();
    }
    pages
}

/// Turns pages back into columns.
pub fn decode<R: Row>(pages: &[Page]) -> Vec<Gathered> {
    let mut pages = pages.iter();
    R::COLUMNS.iter().map(|column| Gathered::decode(&column.cells, &mut pages)).collect()
}

/// Turns columns back into so many rows.
pub fn rows<R: Row>(columns: &[Gathered], count: usize) -> Vec<R> {
    let mut rows = vec![R::blank(); count];
    for (column, gathered) in R::COLUMNS.iter().zip(columns) {
        gathered.put(&column.cells, &mut rows);
    }
    rows
}

impl Gathered {
    pub fn new<R>(cells: &Cells<R>) -> Gathered {
        match cells {
            Cells::U64(..) => Gathered::Numbers(Vec::new()),
            Cells::MaybeU64(..) => Gathered::MaybeNumbers(Nullable::default()),
            Cells::Word(..) => Gathered::Words(Vec::new()),
            Cells::Bool(..) => Gathered::Bools(Vec::new()),
            Cells::MaybeText(..) => Gathered::MaybeTexts { present: Vec::new(), texts: Vec::new() },
            Cells::Ranges(..) => Gathered::Ranges {
                again: Vec::new(),
                present: Vec::new(),
                starts: Vec::new(),
                ends: Vec::new(),
            },
            Cells::MaybeF64(..) | Cells::Text(..) | Cells::Texts(..) | Cells::Causes(..) => {
                unreachable!("no trace has such a column")
            }
        }
    }

    pub fn gather<R>(&mut self, cells: &Cells<R>, rows: &[R]) {
        match (self, cells) {
            (Gathered::Numbers(numbers), Cells::U64(get, _)) => get(rows, numbers),
            (Gathered::MaybeNumbers(numbers), Cells::MaybeU64(get, _)) => get(rows, numbers),
            (Gathered::Words(words), Cells::Word(_, get, _)) => get(rows, words),
            (Gathered::Bools(bools), Cells::Bool(get, _)) => get(rows, bools),
            (Gathered::MaybeTexts { present, texts }, Cells::MaybeText(get, _)) => {
                for text in rows.iter().map(get) {
                    present.push(text.is_some().into());
                    if let Some(text) = text {
                        texts.extend((text.len() as u32).to_le_bytes());
                        texts.extend(text.as_bytes());
                    }
                }
            }
            (Gathered::Ranges { again, present, starts, ends }, Cells::Ranges(get, _)) => {
                for ranges in rows.iter().map(get) {
                    if ranges.is_empty() {
                        again.push(0);
                        present.push(0);
                    }
                    for (place, &(start, end)) in ranges.iter().enumerate() {
                        again.push((place > 0).into());
                        present.push(1);
                        starts.push(start.into());
                        ends.push(end.into());
                    }
                }
            }
            _ => unreachable!("made for this column"),
        }
    }

    fn clear(&mut self) {
        match self {
            Gathered::Numbers(numbers) => numbers.clear(),
            Gathered::MaybeNumbers(Nullable { present, values }) => {
                present.clear();
                values.clear();
            }
            Gathered::Words(codes) | Gathered::Bools(codes) => codes.clear(),
            Gathered::MaybeTexts { present, texts } => {
                present.clear();
                texts.clear();
            }
            Gathered::Ranges { again, present, starts, ends } => {
                again.clear();
                present.clear();
                starts.clear();
                ends.clear();
            }
        }
    }

    /// `out` is where it is made: it grows once for all pages.
    fn encode<R>(&self, cells: &Cells<R>, out: &mut Vec<u8>, pages: &mut Vec<Page>) {
        let mut page = |out: &[u8], encoding, cells| {
            pages.push(Page { bytes: Bytes::copy_from_slice(out), encoding, cells });
        };
        out.clear();
        match (self, cells) {
            (Gathered::Numbers(numbers), _) => {
                delta::encode(numbers, Width::Eight, out);
                page(out, Encoding::DELTA_BINARY_PACKED, numbers.len());
            }
            (Gathered::MaybeNumbers(Nullable { present, values }), _) => {
                put_levels(present, out);
                delta::encode(values, Width::Eight, out);
                page(out, Encoding::DELTA_BINARY_PACKED, present.len());
            }
            (Gathered::Words(codes), Cells::Word(words, ..)) => {
                let width = code_width(words);
                out.push(width as u8);
                bits::encode_runs(codes, width, out);
                page(out, Encoding::RLE_DICTIONARY, codes.len());
            }
            (Gathered::Bools(bools), _) => {
                bits::pack_groups(bools, 1, out);
                page(out, Encoding::PLAIN, bools.len());
            }
            (Gathered::MaybeTexts { present, texts }, _) => {
                put_levels(present, out);
                out.extend(texts);
                page(out, Encoding::PLAIN, present.len());
            }
            (Gathered::Ranges { again, present, starts, ends }, _) => {
                put_levels(again, out);
                put_levels(present, out);
                let levels = out.len();
                for values in [starts, ends] {
                    out.truncate(levels);
                    delta::encode(values, Width::Four, out);
                    page(out, Encoding::DELTA_BINARY_PACKED, present.len());
                }
            }
            _ => unreachable!("made for this column"),
        }
    }

    fn decode<'p, R>(cells: &Cells<R>, pages: &mut impl Iterator<Item = &'p Page>) -> Gathered {
        let mut page = || pages.next().expect("a page for each column");
        let mut gathered = Gathered::new(cells);
        match &mut gathered {
            Gathered::Numbers(numbers) => delta::decode(&page().bytes, Width::Eight, numbers),
            Gathered::MaybeNumbers(Nullable { present, values }) => {
                let page = page();
                let mut bytes = &page.bytes[..];
                take_levels(&mut bytes, page.cells, present);
                delta::decode(bytes, Width::Eight, values);
            }
            Gathered::Words(codes) => {
                let page = page();
                bits::decode_runs(&page.bytes[1..], page.bytes[0].into(), page.cells, codes);
            }
            Gathered::Bools(bools) => {
                let page = page();
                bools.extend(bits::unpack(&page.bytes, 1).take(page.cells).map(|bit| bit as u8));
            }
            Gathered::MaybeTexts { present, texts } => {
                let page = page();
                let mut bytes = &page.bytes[..];
                take_levels(&mut bytes, page.cells, present);
                texts.extend(bytes);
            }
            Gathered::Ranges { again, present, starts, ends } => {
                for values in [starts, ends] {
                    let page = page();
                    let mut bytes = &page.bytes[..];
                    again.clear();
                    present.clear();
                    take_levels(&mut bytes, page.cells, again);
                    take_levels(&mut bytes, page.cells, present);
                    delta::decode(bytes, Width::Four, values);
                }
            }
        }
        gathered
    }

    fn put<R>(&self, cells: &Cells<R>, rows: &mut [R]) {
        const HOLDS: &str = "it comes from such a row";
        match (self, cells) {
            (Gathered::Numbers(numbers), Cells::U64(_, set)) => {
                rows.iter_mut().zip(numbers).for_each(|(row, &number)| set(row, number).expect(HOLDS));
            }
            (Gathered::MaybeNumbers(Nullable { present, values }), Cells::MaybeU64(_, set)) => {
                let known = rows.iter_mut().zip(present).filter(|&(_, &present)| present == 1);
                known.zip(values).for_each(|((row, _), &value)| set(row, value).expect(HOLDS));
            }
            (Gathered::Words(codes), Cells::Word(words, _, set)) => {
                let put = |(row, &code): (_, &u8)| set(row, words[usize::from(code)]).expect(HOLDS);
                rows.iter_mut().zip(codes).for_each(put);
            }
            (Gathered::Bools(bools), Cells::Bool(_, set)) => {
                rows.iter_mut().zip(bools).for_each(|(row, &bool)| set(row, bool == 1));
            }
            (Gathered::MaybeTexts { present, texts }, Cells::MaybeText(_, set)) => {
                let mut texts = &texts[..];
                for (row, _) in rows.iter_mut().zip(present).filter(|&(_, &present)| present == 1) {
                    let length =
                        bits::take(&mut texts, 4).try_into().map(u32::from_le_bytes).expect("four bytes");
                    let text = bits::take(&mut texts, length as usize);
                    set(row, str::from_utf8(text).expect("it was a text"));
                }
            }
            (Gathered::Ranges { again, present, starts, ends }, Cells::Ranges(_, push)) => {
                let mut ranges = starts.iter().zip(ends);
                let mut next_row = 0;
                for (&again, &present) in again.iter().zip(present) {
                    next_row += usize::from(again == 0);
                    if present == 1 {
                        let (&start, &end) = ranges.next().expect("an item for each level that says so");
                        push(&mut rows[next_row - 1], start as u32, end as u32);
                    }
                }
            }
            _ => unreachable!("made for this column"),
        }
    }
}

/// Bits for a place in a list of words.
pub fn code_width(words: &[&str]) -> u32 {
    usize::BITS - (words.len() - 1).leading_zeros()
}

fn put_levels(levels: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; 4]);
    bits::encode_runs(levels, LEVEL, out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn take_levels(bytes: &mut &[u8], count: usize, out: &mut Vec<u8>) {
    let length = bits::take(bytes, 4).try_into().map(u32::from_le_bytes).expect("four bytes");
    bits::decode_runs(bits::take(bytes, length as usize), LEVEL, count, out);
}
