// Reads the bytes of durable records. They have passed their checksum, so unknown content is a newer program's or a bug
// of this one; it is refused all the same. The records are read in DurableRecord+Bytes.swift, from the values of
// RecordValues.swift.
//
// Unsafe island: the caller keeps the bytes while a reader exists, and each run is checked to be before their end.

/// Why bytes are no durable record.
public struct RecordError: Error, Equatable, CustomStringConvertible {
  /// What is wrong with the bytes.
  public enum Fault: Equatable, Sendable {
    case short
    case kind(UInt8)
    case number, status, identifier, text, coordinate, distance, timestamp, channel, optional, fix, surplus
    /// The record is invalid after those before it.
    case order
  }

  public var fault: Fault
  /// Bytes from the start of what was read.
  public var offset: Int

  /// Where in the record the fault is, and which, for operators.
  public var description: String { "record at byte \(offset): \(fault)" }
}

/// Reads records one by one.
@safe
struct RecordReader: ~Copyable {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0
  /// Where the last record begins.
  private(set) var position = 0
  /// Where the present record ends.
  private var end = 0

  /// `bytes` must stay valid while the reader is used.
  init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = unsafe bytes }

  /// Reads values that are not in a record: `bytes` begin with the first.
  init(whole bytes: UnsafeRawBufferPointer) {
    unsafe self.bytes = unsafe bytes
    end = bytes.count
  }

  /// Whether all records were read.
  var isAtEnd: Bool { unsafe offset >= bytes.count }

  /// One record: `body` gets the number of its kind and must read all members.
  mutating func record<Record>(
    _ body: (UInt8, inout RecordReader) throws(RecordError) -> Record
  ) throws(RecordError) -> Record {
    position = offset
    end = unsafe bytes.count
    let length = Int(try read() as UInt32)
    guard unsafe length <= bytes.count - offset else { throw failure(.short) }
    end = offset + length
    let record = try body(try read(), &self)
    guard offset == end else { throw failure(.surplus) }
    return record
  }

  func failure(_ fault: RecordError.Fault) -> RecordError { RecordError(fault: fault, offset: offset) }

  /// The next bytes.
  mutating func take(_ count: Int) throws(RecordError) -> UnsafeRawBufferPointer {
    guard count <= end - offset else { throw failure(.short) }
    defer { offset += count }
    return unsafe UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// The bytes of a text that has its length before it.
  mutating func takeText() throws(RecordError) -> UnsafeRawBufferPointer { unsafe try take(Int(try read() as UInt16)) }
}
