// Families of tokens as hubs of a cluster tell each other of them: as they stand in the journal.
package import HubBytes

extension TokenFamily {
  /// As another hub is told of it.
  package func append(to bytes: inout ByteBuffer) { RecordWriter.write(.tokenFamily(self), into: &bytes) }

  /// Nil for what `append` did not write.
  package init?(_ bytes: ArraySlice<UInt8>) {
    let read = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(RecordError) in
        var reader = unsafe RecordReader(bytes)
        return try reader.record { (kind, reader) throws(RecordError) in try DurableRecord(kind, from: &reader) }
      }
    }
    guard case .success(.tokenFamily(let family)) = read else { return nil }
    self = family
  }
}
