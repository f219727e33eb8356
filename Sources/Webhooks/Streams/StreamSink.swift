// A connection to a stream's server, without its socket: bytes in, bytes and events out, time as input.
import HubBytes
import HubMessages

/// What a stream's server says.
enum SinkEvent: Equatable {
  /// It takes events.
  case ready
  /// It has said that the connection goes over to TLS now.
  case plainTextEnds
  /// It has stored these; `repeats` of them, 0 to all, it had before.
  case stored([JournalPosition], repeats: Int)
  case refused([JournalPosition], reason: String, retryAfterSeconds: Double?)
  /// So many positions were not taken, of those that were sent over this connection and not refused yet.
  case positionsRefused(Int)
  /// It can never take this one.
  case impossible(JournalPosition, reason: String)
  /// It wants nothing more, ever.
  case gone
  /// The connection is over, as both sides know.
  case finished
  /// The connection is of no further use.
  case failed(String)
}

protocol StreamSink: AnyObject {
  /// How events go to it.
  var mode: StreamQueue.Mode { get }
  /// It is connected to when there is something to send, and not before.
  var isConnectedOnDemand: Bool { get }
  var isReady: Bool { get }

  /// A connection was begun.
  func opened(_ now: Moment)
  /// The TLS that it has asked for stands.
  func secured()
  func received(_ bytes: UnsafeRawBufferPointer, _ now: Moment)
  /// The connection ended, and nobody knows about what was under way. True where that is no fault.
  func closed(_ reason: String) -> Bool
  /// - Precondition: it is ready.
  func send(_ messages: [StreamMessage], _ now: Moment)
  /// Whether positions may be sent now.
  var takesPositions: Bool { get }
  /// Sends all positions of a table, once; returns how many.
  /// - Precondition: it takes positions.
  func send(_ positions: inout PositionTable, _ now: Moment) -> Int
  /// What is to be written to the connection.
  func takeOutput(into buffer: inout ByteBuffer)
  func takeEvents() -> [SinkEvent]
}

extension StreamSink {
  /// Most have TLS from the first byte on, or never.
  func secured() {}
}
