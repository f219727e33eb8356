// Families of tokens between hubs of a cluster, in the journal's binary form.
package import HubBytes

/// Writes and reads a family for another hub.
package enum TokenFamilyBytes {
  package static func append(_ family: TokenFamily, to bytes: inout ByteBuffer) {
    RecordWriter.write(.tokenFamily(family), into: &bytes)
  }

  /// Nil for what `append` did not write.
  package static func family(_ bytes: ArraySlice<UInt8>) -> TokenFamily? {
    let read = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(RecordError) in
        var reader = unsafe RecordReader(bytes)
        return try reader.record { (kind, reader) throws(RecordError) in try DurableRecord(kind, from: &reader) }
      }
    }
    guard case .success(.tokenFamily(let family)) = read else { return nil }
    return family
  }
}
