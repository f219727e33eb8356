// What a program that reads its feeds slowly, or not at all, can make grow.

extension FeedReader {
  /// Events that wait to be read. At it they are dropped, the reader gets a gap, and the hub is asked how things stand.
  static var maximumEvents: Int { 256 }
}

extension FeedTable {
  /// Readers of all feeds of one client together. At it a new reader's sequence ends at once, a trip's by saying why.
  static var maximumReaders: Int { 4096 }
}

extension AreaMap {
  /// Drivers of one cell, which are as many as a hub shows of one. What comes beyond is counted in `more`.
  static let driversPerCell = 5000
  /// Cells of one view, likewise. Those beyond are not shown.
  static let maximumCells = 256
}

extension OfferDesk {
  /// Readers of the offers of one client. At it a new reader's sequence ends at once.
  static var maximumReaders: Int { 64 }
}

extension HubEngine {
  /// Questions and moves that wait for their answer. At it one more fails with `full`.
  static var maximumRequests: Int { 1024 }
  /// What the session has room for at least: questions, moves, and a driver's fixes that are on their way, one by one
  /// where each is of another trip.
  static var queuedMessages: Int {
    maximumRequests + FixQueue.maximumMoves + DriverPart.maximumInFlight + DriverPart.maximumBatch
  }
  /// Bytes that the session has room for at least, as it counts them: at most 1,250 for a question, 1,150 for a move,
  /// 200 for a fix.
  static var queuedBytes: Int { 2 * 1024 * 1024 }
}
