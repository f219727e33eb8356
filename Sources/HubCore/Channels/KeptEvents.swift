// A channel's events kept for recovery, as the journal's records of them.
//
// As a value a `trip_update` takes 800 bytes: a publication has room for any body, and an update for four ids of 64
// bytes. Its record has some 80. Each trip keeps one for its channel and one for its driver's, so all of a channel are
// in one array, which takes one allocation (loadtest/NOTES.md, "What a session takes"). They are read only when a
// client resumes and has missed some.
//
// Unsafe island: each number and record is read within the array, which is checked, and its bytes were written here.
import HubBytes
import HubMessages

/// Kept events of one channel, oldest first.
struct KeptEvents {
  /// Each as its node in the order of all channels' events, its `contentBytes`, and its record, which begins with its
  /// length: four bytes each.
  private var bytes: [UInt8] = []
  private var size: UInt32 = 0
  /// Where the oldest begins: removed bytes before it are dropped when they are more than half of the array.
  private var start: UInt32 = 0
  /// Bytes before a record.
  private static let head = 8

  var count: Int { Int(size) }
  var isEmpty: Bool { size == 0 }

  /// Adds an event. Amortised O(its bytes).
  mutating func append(_ event: Publication, node: UInt32) {
    var entry = ByteBuffer()
    entry.record(node, UInt32(event.contentBytes))
    RecordWriter.write(.event(event), into: &entry)
    // Most channels never have more than four: until then the array is as large as its events, and doubles only later.
    if size < 4 { bytes.reserveCapacity(bytes.count + entry.count) }
    unsafe entry.withBytes { unsafe bytes.append(contentsOf: $0) }
    size += 1
  }

  /// Removes the oldest, and gives its node and its `contentBytes`. Precondition: there is one. Amortised O(its bytes).
  mutating func removeFirst() -> (node: UInt32, contentBytes: UInt32) {
    precondition(size > 0)
    let first = head(of: Int(start))
    size -= 1
    start = UInt32(end(of: Int(start)))
    if size == 0 {
      (bytes, start) = ([], 0)
    } else if Int(start) > bytes.count / 2 {
      bytes.removeFirst(Int(start))
      start = 0
    }
    return first
  }

  /// Removes all, and gives their nodes and `contentBytes`.
  mutating func removeAll() -> [(node: UInt32, contentBytes: UInt32)] {
    var heads: [(node: UInt32, contentBytes: UInt32)] = []
    var offset = Int(start)
    while offset < bytes.count {
      heads.append(head(of: offset))
      offset = end(of: offset)
    }
    (bytes, size, start) = ([], 0, 0)
    return heads
  }

  /// The newest `wanted` events. O(bytes).
  func suffix(_ wanted: Int) -> [Publication] {
    var offset = 0
    for _ in 0..<max(0, count - wanted) { offset = end(of: Int(start) + offset) - Int(start) }
    var events: [Publication] = []
    while Int(start) + offset < bytes.count { events.append(next(&offset)) }
    return events
  }

  /// The event at `offset`, counted from the oldest one; moves `offset` on to the next event. O(its bytes).
  func next(_ offset: inout Int) -> Publication {
    let (first, end) = (Int(start) + offset + KeptEvents.head, end(of: Int(start) + offset))
    precondition(end <= bytes.count)
    offset = end - Int(start)
    do throws(RecordError) {
      let span = bytes.span
      let read = try unsafe span.withUnsafeBytes { (bytes) throws(RecordError) in
        var reader = unsafe RecordReader(UnsafeRawBufferPointer(rebasing: bytes[first..<end]))
        return try DurableRecord.next(from: &reader)
      }
      guard case .event(let event) = read else { preconditionFailure("an event's record is of an event") }
      return event
    } catch {
      preconditionFailure("what this hub has written it can read: \(error)")
    }
  }

  private func head(of offset: Int) -> (node: UInt32, contentBytes: UInt32) {
    (number(at: offset), number(at: offset + 4))
  }

  /// Where the next entry begins.
  private func end(of offset: Int) -> Int {
    offset + KeptEvents.head + 4 + Int(number(at: offset + KeptEvents.head))
  }

  private func number(at offset: Int) -> UInt32 {
    precondition(offset >= 0 && offset + 4 <= bytes.count)
    let span = bytes.span
    return unsafe span.withUnsafeBytes {
      unsafe UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
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
