//! The rows of a trace, encoded while they are recorded.
//!
//! A trace has millions of rows. Kept as they are they would cost more than the simulation that makes them: their
//! memory is touched for the first time, and then read once for each column. So a few rows are turned into columns
//! while the processor still has them in its cache, and some thousands into the pages of a Parquet file, which take an
//! eighth of the memory and are written as they are.

mod bits;
mod delta;
mod file;
mod page;

pub(crate) use file::TraceFile;

use crate::schema::Row;
use core::fmt;
use page::{Gathered, Page};

/// Rows that are turned into columns together: the largest are 112 B, and the L1 cache holds 256 of them.
const RECENT: usize = 256;

/// Rows of a block. With 8 B for a number, the columns of as many fit into the L2 cache.
const BLOCK: usize = 4096;

/// The rows of a trace, in the order in which they were pushed.
#[derive(Clone)]
pub struct Trace<R: 'static> {
    blocks: Vec<Block>,
    /// Rows that fill no block yet, by column, and how many; those of `recent` come behind.
    open: Vec<Gathered>,
    open_rows: usize,
    recent: Vec<R>,
}

/// Encoded rows: a page for each column of the file, of lists of ranges two.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    rows: usize,
    pages: Vec<Page>,
}

impl<R> Default for Trace<R> {
    fn default() -> Trace<R> {
        Trace { blocks: Vec::new(), open: Vec::new(), open_rows: 0, recent: Vec::new() }
    }
}

impl<R> Trace<R> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.rows).sum::<usize>() + self.open_rows + self.recent.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[allow(private_bounds, reason = "the rows of our own tables only")]
impl<R: Row> Trace<R> {
    /// Adds a row.
    pub fn push(&mut self, row: R) {
        if self.recent.len() == RECENT {
            self.gather();
        }
        self.recent.push(row);
    }

    /// The rows, one by one. What is encoded is decoded for it: who needs them more than once keeps them.
    pub fn iter(&self) -> impl Iterator<Item = R> + '_ {
        let encoded = self.blocks.iter().flat_map(Block::decode);
        let open = page::rows(&self.open, self.open_rows);
        encoded.chain(open).chain(self.recent.iter().cloned())
    }

    /// All rows.
    pub fn to_vec(&self) -> Vec<R> {
        self.iter().collect()
    }

    /// Everything in blocks, encoded.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = self.blocks.clone();
        let (mut rest, rows) = (self.open.clone(), self.open_rows + self.recent.len());
        if rows > 0 {
            page::gather(&self.recent, &mut rest);
            blocks.push(Block { rows, pages: page::encode::<R>(&mut rest) });
        }
        blocks
    }

    #[cold]
    fn gather(&mut self) {
        page::gather(&self.recent, &mut self.open);
        self.open_rows += self.recent.len();
        self.recent.clear();
        if self.open_rows >= BLOCK {
            self.blocks.push(Block { rows: self.open_rows, pages: page::encode::<R>(&mut self.open) });
            self.open_rows = 0;
        }
    }
}

impl Block {
    fn decode<R: Row>(&self) -> Vec<R> {
        page::rows(&page::decode::<R>(&self.pages), self.rows)
    }
}

impl<R: Row> FromIterator<R> for Trace<R> {
    fn from_iter<T: IntoIterator<Item = R>>(rows: T) -> Trace<R> {
        let mut trace = Trace::default();
        trace.extend(rows);
        trace
    }
}

impl<R: Row> From<Vec<R>> for Trace<R> {
    fn from(rows: Vec<R>) -> Trace<R> {
        rows.into_iter().collect()
    }
}

impl<R: Row> Extend<R> for Trace<R> {
    fn extend<T: IntoIterator<Item = R>>(&mut self, rows: T) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}

impl<R: Row + PartialEq> PartialEq for Trace<R> {
    fn eq(&self, other: &Trace<R>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<R: Row + fmt::Debug> fmt::Debug for Trace<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
