// A connection to a stream's server, without its socket: bytes in, bytes and events out, time as input.
import HubBytes
import HubMessages

/// An event of a stream's server.
enum SinkEvent: Equatable {
  /// It accepts events.
  case ready
  /// The connection changes to TLS now.
  case plainTextEnds
  /// It has stored these; `repeats` of them, 0 to all, it had before.
  case stored([JournalPosition], repeats: Int)
  case refused([JournalPosition], reason: String, retryAfterSeconds: Double?)
  /// So many positions were refused, of those sent over this connection.
  case positionsRefused(Int)
  /// It can never store this one.
  case impossible(JournalPosition, reason: String)
  /// It wants no more events, permanently.
  case gone
  /// The connection has ended as agreed.
  case finished
  /// The connection is unusable.
  case failed(String)
}

protocol StreamSink: AnyObject {
  /// How events are sent.
  var mode: StreamQueue.Mode { get }
  /// It is connected only when there is something to send.
  var isConnectedOnDemand: Bool { get }
  var isReady: Bool { get }
  /// The server owes an answer to positions, or the rest of an answer.
  var owesAnswer: Bool { get }

  /// A connection was begun.
  func opened(_ now: Moment)
  /// TLS is established.
  func secured()
  func received(_ bytes: UnsafeRawBufferPointer, _ now: Moment)
  /// The connection has ended, and answers no more events. True if that is no fault, as of an idle connection.
  func closed(_ reason: String) -> Bool
  /// - Precondition: it is ready.
  func send(_ messages: [StreamMessage], _ now: Moment)
  /// Whether positions may be sent now.
  var takesPositions: Bool { get }
  /// Sends all positions of a table, once; returns how many.
  /// - Precondition: it takes positions.
  func send(_ positions: inout PositionTable, _ now: Moment) -> Int
  /// Moves the output for the connection into `buffer`.
  func takeOutput(into buffer: inout ByteBuffer)
  func takeEvents() -> [SinkEvent]
}

extension StreamSink {
  /// Most use TLS from the first byte on, or never.
  func secured() {}
}
