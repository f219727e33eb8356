// The `id:` of a stream, which is returned as `Last-Event-ID` (HTML standard, "Server-sent events"): for each channel,
// in the order of the request's parameters, the epoch and the number of the newest event sent, `epoch:sequence`,
// separated by commas. It is empty for a channel without an event yet.
public import HubBytes

/// The newest events that a client has of its stream's channels.
public struct LastEventID: Equatable {
  /// One element for each channel, in order; nil where the client has no event yet.
  public var points: [ResumePoint?]

  public init(points: [ResumePoint?]) { self.points = points }

  /// Reads one; nil where it is invalid, or has another number of channels. O(length), at most that of a request's
  /// head.
  public init?(_ text: some Collection<UInt8>, channels: Int) {
    var points: [ResumePoint?] = []
    for part in text.split(separator: UInt8(ascii: ","), maxSplits: channels, omittingEmptySubsequences: false) {
      if part.isEmpty {
        points.append(nil)
        continue
      }
      guard let point = ResumePoint(part) else { return nil }
      points.append(point)
    }
    guard points.count == channels else { return nil }
    self.init(points: points)
  }

  /// Appends the line `id: …`, without the empty line that ends an event.
  public func writeLine(into buffer: inout ByteBuffer) {
    buffer.append("id: ")
    for (index, point) in points.enumerated() {
      if index > 0 { buffer.append(UInt8(ascii: ",")) }
      guard let point else { continue }
      buffer.append(point.epoch)
      buffer.append(UInt8(ascii: ":"))
      buffer.append(integer: point.since)
    }
    buffer.append(UInt8(ascii: "\n"))
  }
}

extension ResumePoint {
  /// `epoch:sequence`.
  fileprivate init?(_ text: some Sequence<UInt8>) {
    let halves = Array(text).split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard halves.count == 2, (1...MessageLimits.epochBytes).contains(halves[0].count),
      (1...20).contains(halves[1].count)
    else { return nil }
    let digits = String(decoding: halves[1], as: UTF8.self)
    // No control character: the epoch is written into a line of the stream, which it must not end.
    guard halves[0].allSatisfy({ $0 > 0x20 && $0 != 0x7F }), halves[1].allSatisfy(\.isDigit),
      let since = UInt64(digits),
      let name = String(validating: halves[0], as: UTF8.self), let epoch = InlineText(name)
    else { return nil }
    self.init(since: since, epoch: epoch)
  }
}
