// Families of tokens between hubs of a cluster, in the journal's binary form.
package import HubBytes

extension TokenFamily {
  /// Appends the family for another hub.
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
