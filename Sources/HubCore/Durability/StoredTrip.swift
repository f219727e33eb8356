// A trip as a journal has it, for who reads the journal beside the hub: trips that the hub has forgotten are there.
public import HubMessages

public struct StoredTrip: Sendable, Equatable {
  /// Grows from trip to trip in the order in which they began.
  public let number: UInt64
  public let report: TripReport

  /// The trip of a record, which begins with its length; nil where the record is of another kind. Throws where it is
  /// damaged.
  public init?(record bytes: UnsafeRawBufferPointer) throws(RecordError) {
    var reader = unsafe RecordReader(bytes)
    guard case .trip(let durable) = try DurableRecord.next(from: &reader) else { return nil }
    number = durable.number
    report = Trip(durable, hash: 0, now: 0).report
  }
}
