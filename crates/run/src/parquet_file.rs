//! Opening of a Parquet file that anybody may have written.

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;

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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, RecordBatch};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::{
        ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
    };
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
}
