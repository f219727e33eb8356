// A trip as a journal has it, for who reads the journal beside the hub: trips that the hub has forgotten are there.
import Messages

extension TripReport {
  /// The trip of a record, which begins with its length; nil where the record is of another kind. Throws where it is
  /// damaged.
  public init?(record bytes: UnsafeRawBufferPointer) throws(RecordError) {
    var reader = RecordReader(bytes)
    guard case .trip(let durable) = try reader.next() else { return nil }
    var trip = Trip(id: durable.id, hash: 0, status: durable.status, changed: durable.changed, lastHeard: 0)
    trip.take(durable)
    self = trip.report
  }
}
