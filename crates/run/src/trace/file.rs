//! A file of traces: the pages of many runs, one behind the other, in row groups.

use super::page::{self, Page, code_width};
use super::{Block, Trace};
use crate::RunKey;
use crate::arrow::schema;
use crate::schema::{Cells, Column, Row};
use bytes::Bytes;
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page as ParquetPage, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

/// Rows of a row group at most: what readers take at a time.
const ROW_GROUP: usize = 1 << 17;

/// Bytes that are written together: a file system takes its time for each call.
const WRITE: usize = 1 << 20;

/// Bytes that the header of a page takes, with some to spare.
const PAGE_HEADER: usize = 64;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct TraceFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    /// The columns of the file, with the pages that wait for their row group to be full.
    columns: Vec<FileColumn>,
    waiting_rows: usize,
}

#[derive(Debug)]
struct FileColumn {
    /// The list that its cells are places in.
    words: Option<&'static [&'static str]>,
    waiting: Vec<Page>,
}

impl TraceFile {
    pub fn create<R: Row>(file: File) -> Result<TraceFile> {
        let arrow = schema::<R>();
        let mut properties = WriterProperties::default();
        add_encoded_arrow_schema_to_metadata(&arrow, &mut properties);
        let parquet = ArrowSchemaConverter::new().convert(&arrow)?;
        let file = BufWriter::with_capacity(WRITE, file);
        let writer = SerializedFileWriter::new(file, parquet.root_schema_ptr(), Arc::new(properties))?;
        let columns =
            RunKey::COLUMNS.iter().flat_map(file_columns).chain(R::COLUMNS.iter().flat_map(file_columns));
        Ok(TraceFile { writer, columns: columns.collect(), waiting_rows: 0 })
    }

    /// Adds the rows of a run.
    pub fn append<R: Row>(&mut self, key: RunKey, trace: &Trace<R>) -> Result<()> {
        // The run is the same in every row: a page of it serves all blocks of one length.
        let mut keys = Block { rows: 0, pages: Vec::new() };
        for block in trace.blocks() {
            if keys.rows != block.rows {
                let mut columns = Vec::new();
                page::gather(&vec![key; block.rows], &mut columns);
                keys = Block { rows: block.rows, pages: page::encode::<RunKey>(&mut columns) };
            }
            if self.waiting_rows + block.rows > ROW_GROUP {
                self.write_row_group()?;
            }
            let pages = keys.pages.iter().cloned().chain(block.pages);
            self.columns.iter_mut().zip(pages).for_each(|(column, page)| column.waiting.push(page));
            self.waiting_rows += block.rows;
        }
        Ok(())
    }

    fn write_row_group(&mut self) -> Result<()> {
        if self.waiting_rows == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.waiting_rows) as u64;
        let descriptors = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for (column, descriptor) in self.columns.iter_mut().zip(descriptors) {
            let (bytes, metadata) = column.take_chunk(descriptor)?;
            let close = ColumnCloseResult {
                bytes_written: bytes.len() as u64,
                rows_written: rows,
                metadata,
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            group.append_column(&bytes, close)?;
        }
        group.close().map(|_| ())
    }

    pub fn append_key_value_metadata(&mut self, entry: KeyValue) {
        self.writer.append_key_value_metadata(entry);
    }

    /// Writes what is left, and what a reader begins with.
    pub fn finish(&mut self) -> Result<()> {
        self.write_row_group()?;
        self.writer.finish().map(|_| ())
    }

    pub fn file(&self) -> &File {
        self.writer.inner().get_ref()
    }
}

impl FileColumn {
    /// The waiting pages behind one another, and where what begins.
    fn take_chunk(&mut self, descriptor: ColumnDescPtr) -> Result<(Bytes, ColumnChunkMetaData)> {
        let length: usize = self.waiting.iter().map(|page| page.bytes.len() + PAGE_HEADER).sum();
        let mut chunk = TrackedWrite::new(Vec::with_capacity(length));
        let mut writer = SerializedPageWriter::new(&mut chunk);
        let mut metadata = ColumnChunkMetaData::builder(descriptor);
        let mut encodings = vec![Encoding::RLE];
        let mut size = 0;
        if let Some(words) = self.words {
            size += writer.write_page(dictionary(words))?.bytes_written;
            metadata = metadata.set_dictionary_page_offset(Some(0));
            encodings.push(Encoding::PLAIN);
        }
        metadata = metadata.set_data_page_offset(size as i64);
        let mut cells = 0;
        for Page { bytes, encoding, cells: of_page } in self.waiting.drain(..) {
            if !encodings.contains(&encoding) {
                encodings.push(encoding);
            }
            cells += of_page as i64;
            let length = bytes.len();
            let page = ParquetPage::DataPage {
                buf: bytes,
                num_values: of_page as u32,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            size += writer.write_page(CompressedPage::new(page, length))?.bytes_written;
        }
        let metadata = metadata
            .set_encodings(encodings)
            .set_num_values(cells)
            .set_total_compressed_size(size as i64)
            .set_total_uncompressed_size(size as i64)
            .build()?;
        Ok((chunk.into_inner()?.into(), metadata))
    }
}

/// What a column of a table is in the file: one column, for ranges two.
fn file_columns<R>(column: &Column<R>) -> impl Iterator<Item = FileColumn> {
    let (count, words) = match column.cells {
        Cells::Word(words, ..) => (1, Some(words)),
        Cells::Ranges(..) => (2, None),
        _ => (1, None),
    };
    (0..count).map(move |_| FileColumn { words, waiting: Vec::new() })
}

fn dictionary(words: &[&str]) -> CompressedPage {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend((word.len() as u32).to_le_bytes());
        bytes.extend(word.as_bytes());
    }
    debug_assert!(code_width(words) <= u8::BITS);
    let length = bytes.len();
    let page = ParquetPage::DictionaryPage {
        buf: bytes.into(),
        num_values: words.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    CompressedPage::new(page, length)
}
