// As much of a segment's form (Journal's JournalFormat.swift) as it takes to find its groups and the fixes in them,
// written again: what a check reads must not depend on the code that it checks.
public import HubCore
public import HubMessages

public enum StoredSegment {
  private static let headerBytes = 36
  private static let groupHeaderBytes = 16

  /// Gives the payload of each group that is there in full length, from a group's start on; where the last one ends.
  @discardableResult
  public static func forEachGroup(
    in bytes: [UInt8], from start: Int? = nil, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> Int {
    bytes.withUnsafeBytes { bytes in
      var offset = start ?? headerBytes
      while offset + groupHeaderBytes <= bytes.count {
        let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)))
        let payload = offset + groupHeaderBytes
        // No group is empty: that is what a write that was cut has left, zeros.
        guard length > 0, payload + length <= bytes.count else { break }
        body(UnsafeRawBufferPointer(rebasing: bytes[payload..<payload + length]))
        offset = payload + length
      }
      return offset
    }
  }

  /// Where the last group but one begins, as the last may be one that was being written; 0 where there are fewer than
  /// three.
  static func startOfLastButOne(_ bytes: [UInt8]) -> Int {
    var starts = [headerBytes]
    forEachGroup(in: bytes) { group in starts.append(starts[starts.count - 1] + groupHeaderBytes + group.count) }
    return starts.count > 3 ? starts[starts.count - 3] : 0
  }

  /// Each fix in the records of a group, and whose it is.
  public static func forEachFix(in group: UnsafeRawBufferPointer, _ body: (Identifier, StoredFix) -> Void) {
    DurableKeys.forEach(in: group) { _, offset in
      do throws(RecordError) {
        let record = try FixesRecord(UnsafeRawBufferPointer(rebasing: group[offset...]))
        for index in 0..<record.count { body(record.driverID, record[index]) }
      } catch {
        return  // a trip's record
      }
    }
  }
}
