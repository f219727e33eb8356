// Sorts and writes the drivers of an answer in pieces: a thousand at once would delay others on the thread.
public import HubBytes

/// Writes a list of drivers, nearest first, piece by piece. The pieces together are the bytes of the sorted list in a
/// `QueryResult`: in JSON without the braces.
public struct DriverListWriter {
  private let list: DriverList
  private let form: MessageForm
  /// Nil before the first piece.
  private var order: DriverOrder?
  private var written = 0
  /// All is written.
  public private(set) var isDone = false

  /// `list` in any order. Does not read it yet.
  public init(_ list: DriverList, form: MessageForm) {
    self.list = list
    self.form = form
  }

  /// The number of drivers left.
  public var left: Int { list.drivers.count - written }

  /// Appends up to `limit` more drivers (1 or more); returns how many it wrote. Some 1 µs for each, and once 10 µs to
  /// order a thousand.
  public mutating func write(atMost limit: Int, into buffer: inout ByteBuffer) -> Int {
    precondition(limit >= 1 && !isDone)
    if order == nil {
      order = DriverOrder(list.drivers)
      switch form {
      case .json: JSONWriter.beginDrivers(&buffer)
      case .binary: BinaryWriter.beginDrivers(list.drivers.count, &buffer)
      }
    }
    let count = min(limit, left)
    for _ in 0..<count {
      let report = list.drivers[order!.next(list.drivers)]
      switch form {
      case .json(let time): JSONWriter.writeDriver(report, isFirst: written == 0, time, &buffer)
      case .binary: BinaryWriter.write(report, &buffer)
      }
      written += 1
    }
    if left == 0 { end(&buffer) }
    return count
  }

  private mutating func end(_ buffer: inout ByteBuffer) {
    switch form {
    case .json: JSONWriter.endDrivers(more: list.more, next: list.cursor, &buffer)
    case .binary: BinaryWriter.endDrivers(more: list.more, &buffer)
    }
    isDone = true
  }
}
