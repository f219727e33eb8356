// The newest position of each driver that a stream has not sent.
import HubBytes
import HubMessages

struct PositionTable {
  private var positions: [Identifier: PublishedPosition] = [:]
  /// Positions that a newer one took the place of, or that had no room or no server.
  private(set) var leftOut: UInt64

  init(leftOut: UInt64 = 0) { self.leftOut = leftOut }

  var isEmpty: Bool { positions.isEmpty }

  mutating func put(_ position: PublishedPosition) {
    let driver = position.location.driverID
    if positions.count >= Self.maximumCount, positions[driver] == nil {
      leftOut += 1
    } else if positions.updateValue(position, forKey: driver) != nil {
      leftOut += 1
    }
  }

  /// The server is away: positions of now are worth nothing when it is back.
  mutating func clear() {
    leftOut += UInt64(positions.count)
    positions.removeAll(keepingCapacity: true)
  }

  /// The server did not take so many of what it was sent.
  mutating func refused(_ count: Int) { leftOut += UInt64(count) }

  /// Takes all as messages; `body` is given the driver's id as a token of a subject, and the message.
  mutating func takeAll(_ body: (_ driver: String, _ message: borrowing ByteBuffer) -> Void) -> Int {
    let count = positions.count
    var buffer = ByteBuffer()
    for (driver, position) in positions {
      buffer.removeAll()
      JSONWriter.write(position, time: .rfc3339, into: &buffer)
      body(StreamMessage.escaped(driver), buffer)
    }
    positions.removeAll(keepingCapacity: true)
    return count
  }
}
