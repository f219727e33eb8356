// An event kept for recovery, as the journal's record of it.
//
// As a value a `trip_update` takes 800 bytes: a publication has room for any body, and an update for four ids of 64
// bytes. Its record has some 80. Each trip keeps one for its channel and one for its driver's, which was half of a
// trip's memory (loadtest/NOTES.md, "A driver with a trip, and its rider"). It is read only when a client resumes and
// has missed it.
import HubBytes
import HubMessages

struct KeptEvent {
  private let record: [UInt8]
  /// Its node in the order of all channels' events.
  let node: UInt32
  /// See `ChannelTable.contentBytes`.
  let contentBytes: UInt32

  init(_ event: Publication, node: UInt32) {
    var bytes = ByteBuffer()
    RecordWriter.write(.event(event), into: &bytes)
    record = bytes.array()
    self.node = node
    contentBytes = UInt32(event.contentBytes)
  }

  /// The event. O(its bytes).
  var publication: Publication {
    do throws(RecordError) {
      let bytes = record.span
      let read = try unsafe bytes.withUnsafeBytes { (bytes) throws(RecordError) in
        var reader = unsafe RecordReader(bytes)
        return try DurableRecord.next(from: &reader)
      }
      guard case .event(let event) = read else { preconditionFailure("an event's record is of an event") }
      return event
    } catch {
      preconditionFailure("what this hub has written it can read: \(error)")
    }
  }
}

extension Publication {
  /// Bytes that it holds beside its members of a fixed size, where a peer decides how many.
  var contentBytes: Int {
    switch body {
    case .tripUpdate(let update): update.route?.utf8.count ?? 0
    case .notification(let made): made.title.utf8.count + made.body.utf8.count + (made.content?.utf8.count ?? 0)
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats, .offer: 0
    }
  }
}
