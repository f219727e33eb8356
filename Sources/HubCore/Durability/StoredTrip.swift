// A trip in a journal, for readers of the journal: it also has trips that the hub has forgotten.
public import HubMessages

/// A trip as one record of a journal has it.
public struct StoredTrip: Sendable, Equatable {
  /// Numbers trips in the order in which they began.
  public let number: UInt64
  public let report: TripReport

  /// The trip of a record, which begins with its length; nil for another kind of record. Throws where it is damaged.
  public init?(record bytes: UnsafeRawBufferPointer) throws(RecordError) {
    var reader = unsafe RecordReader(bytes)
    guard case .trip(let durable) = try DurableRecord.next(from: &reader) else { return nil }
    number = durable.number
    report = Trip(durable, now: 0).report
  }
}
