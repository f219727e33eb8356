// The newest unsent position of each driver of a stream.
import HubBytes
import HubMessages

struct PositionTable {
  private var positions: [Identifier: PublishedPosition] = [:]
  /// Positions that were replaced by a newer one, had no room or no server, or were refused.
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

  /// Drops all: the server is down, and present positions are useless when it returns.
  mutating func clear() {
    leftOut += UInt64(positions.count)
    positions.removeAll(keepingCapacity: true)
  }

  /// The server refused so many sent positions.
  mutating func refused(_ count: Int) { leftOut += UInt64(count) }

  /// Takes all as messages; `body` gets the driver's id as a token of a subject, and the message.
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
