//! Opening of a Parquet file that anybody may have written.

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A reader of `source`, whose footer keeps to the file: the library trusts the places and lengths of columns, and panics
/// on a negative one.
///
/// # Errors
/// No Parquet file, or one whose columns lie outside of it.
pub fn open<T: ChunkReader + 'static>(source: T) -> Result<ParquetRecordBatchReaderBuilder<T>, ParquetError> {
    let length = source.len();
    let builder = ParquetRecordBatchReaderBuilder::try_new(source)?;
    for column in builder.metadata().row_groups().iter().flat_map(|group| group.columns()) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        let inside = end.is_some_and(|end| start <= end && u64::try_from(end).is_ok_and(|end| end <= length));
        if start < 0 || !inside || column.num_values() < 0 {
            return Err(ParquetError::General(format!("column {} is not in the file", column.column_path())));
        }
    }
    Ok(builder)
}

/// What [`open`] has opened, batch by batch. The library panics on some pages that say what cannot be (of
/// `DELTA_BINARY_PACKED` values none, for one): that is an error here, and the last batch.
///
/// # Errors
/// Columns that cannot be read.
pub fn batches<T: ChunkReader + 'static>(
    builder: ParquetRecordBatchReaderBuilder<T>,
) -> Result<Batches, ParquetError> {
    Ok(Batches { reader: Some(builder.build()?) })
}

/// Batches of a Parquet file that anybody may have written.
#[expect(missing_debug_implementations, reason = "the library's reader has none")]
pub struct Batches {
    /// `None` after an error: what the library was about is not to be used again.
    reader: Option<ParquetRecordBatchReader>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let batch = catch_unwind(AssertUnwindSafe(|| reader.next()))
            .unwrap_or_else(|_| Some(Err(ParquetError::General("a page is damaged".to_owned()).into())))?
            .map_err(ParquetError::from);
        if batch.is_err() {
            self.reader = None;
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, RecordBatch};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Encoding;
    use parquet::file::metadata::{
        ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
    };
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    fn file() -> Vec<u8> {
        let column = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("numbers", column as _)]).expect("a batch");
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a schema");
        writer.write(&batch).and_then(|()| writer.close()).expect("in memory");
        bytes
    }

    /// The file with what `change` makes of the footer's only column.
    fn changed(change: impl Fn(ColumnChunkMetaData) -> ColumnChunkMetaData) -> Bytes {
        let mut bytes = file();
        let metadata =
            ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes.clone())).expect("a footer");
        let group = &metadata.row_groups()[0];
        let column = change(group.column(0).clone());
        let group = group.clone().into_builder().set_column_metadata(vec![column]).build().expect("a group");
        let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), vec![group]);
        ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().expect("in memory");
        Bytes::from(bytes)
    }

    #[test]
    fn columns_outside_of_the_file_are_refused() {
        assert!(open(Bytes::from(file())).is_ok());
        let places: [fn(ColumnChunkMetaData) -> ColumnChunkMetaData; 5] = [
            |column| column.into_builder().set_dictionary_page_offset(Some(-1)).build().expect("a column"),
            |column| {
                let column = column.into_builder().set_dictionary_page_offset(None);
                column.set_data_page_offset(i64::MIN).build().expect("a column")
            },
            |column| column.into_builder().set_total_compressed_size(-1).build().expect("a column"),
            |column| column.into_builder().set_total_compressed_size(i64::MAX).build().expect("a column"),
            |column| column.into_builder().set_num_values(-1).build().expect("a column"),
        ];
        for change in places {
            let Err(error) = open(changed(change)) else { panic!("it is refused") };
            assert!(error.to_string().contains("column \"numbers\" is not in the file"), "{error}");
        }
        assert!(open(changed(|column| column)).is_ok());
    }

    /// The first page of `numbers` says that it has no values, and has a first one.
    #[test]
    fn a_page_on_which_the_library_panics_is_an_error() {
        let column = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("numbers", column as _)]).expect("a batch");
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED)
            .build();
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a schema");
        writer.write(&batch).and_then(|()| writer.close()).expect("in memory");
        // 256 values a block (two bytes), four parts, three values, the first one 1 (zigzag).
        let head = bytes.windows(5).position(|five| five == [0x80, 2, 4, 3, 2]).expect("the page's head");
        let whole = batches(open(Bytes::from(bytes.clone())).expect("a footer")).expect("a reader");
        assert_eq!(whole.map(|batch| batch.expect("whole").num_rows()).sum::<usize>(), 3);
        bytes[head + 3] = 0;
        let mut damaged = batches(open(Bytes::from(bytes)).expect("a footer")).expect("a reader");
        assert!(damaged.next().expect("an answer").is_err());
        assert!(damaged.next().is_none(), "nothing follows an error");
    }
}
