// The drivers of an answer, put in order and written in pieces: a thousand at once would hold up whoever else is on the
// thread.
public import HubBytes

/// Writes a list of drivers, nearest first, as much of it at a time as is asked for. The pieces, one behind the other,
/// are the bytes that the list in order has in a `QueryResult`: in JSON without the braces.
public struct DriverListWriter {
  private let list: DriverList
  private let form: MessageForm
  /// Nil before the first piece.
  private var order: DriverOrder?
  private var written = 0
  /// All is written.
  public private(set) var isDone = false

  /// `list` in any order. Looks at nothing of it yet.
  public init(_ list: DriverList, form: MessageForm) {
    self.list = list
    self.form = form
  }

  /// How many drivers are left to be written.
  public var left: Int { list.drivers.count - written }

  /// Appends up to so many more drivers (1 or more); gives how many. Some 1 µs each, and 10 more for the first of a
  /// thousand.
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
    case .json: JSONWriter.endDrivers(more: list.more, cursor: list.cursor, &buffer)
    case .binary: BinaryWriter.endDrivers(more: list.more, &buffer)
    }
    isDone = true
  }
}
