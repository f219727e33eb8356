// Limits of what a slow reader of feeds can make grow.

extension FeedReader {
  /// Unread events. At it they are dropped, the reader gets a gap, and the hub is asked for the present state.
  static var maximumEvents: Int { 256 }
}

extension FeedTable {
  /// Readers of all feeds of one client. At it a new reader's sequence ends at once, a trip's with an event that says
  /// why.
  static var maximumReaders: Int { 4096 }
}

extension AreaMap {
  /// Drivers of one cell, as many as a hub shows. Others are counted in `more`.
  static let driversPerCell = 5000
  /// Cells of one view, as many as a hub allows. Others are not shown.
  static let maximumCells = 256
}

extension OfferDesk {
  /// Readers of the offers of one client. At it a new reader's sequence ends at once.
  static var maximumReaders: Int { 64 }
}

extension HubEngine {
  /// Unanswered questions and moves. At it one more fails with `full`.
  static var maximumRequests: Int { 1024 }
  /// The session's room for messages, at least: questions, moves, and unconfirmed fixes, one by one where each is of
  /// another trip.
  static var queuedMessages: Int {
    maximumRequests + FixQueue.maximumMoves + DriverPart.maximumInFlight + DriverPart.maximumBatch
  }
  /// The session's room in bytes, at least: up to 1,250 for a question, 1,150 for a move, 200 for a fix.
  static var queuedBytes: Int { 2 * 1024 * 1024 }
}
