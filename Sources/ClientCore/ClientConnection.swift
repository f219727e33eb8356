// A client's phases with their data: a phase owns its connection, so that nothing is left for the next.
import HubMessages
import HubWebSocket

extension ClientSession {
  /// `State` with its data. Times are the phases' deadlines (uptime, ns).
  enum Phase {
    case idle
    case waiting(until: Int64)
    case awaitingToken
    case connecting(until: Int64)
    case handshaking(ClientConnection, until: Int64)
    case greeting(ClientConnection, until: Int64)
    case open(ClientConnection)
    case closing(Closing)
    case ended(ClientEnd)

    var isOpen: Bool { if case .open = self { true } else { false } }

    /// Nil without a TCP connection.
    var connection: ClientConnection? {
      switch self {
      case .idle, .waiting, .awaitingToken, .connecting, .ended: nil
      case .handshaking(let connection, _), .greeting(let connection, _), .open(let connection): connection
      case .closing(let closing): closing.connection
      }
    }
  }

  /// A connection that is closing.
  struct Closing {
    /// Nil where TCP was not connected.
    let connection: ClientConnection?
    var cause: DisconnectCause
    let until: Int64
  }

  /// The client's phase, as its application sees it.
  public var state: State {
    switch phase {
    case .idle: .idle
    case .waiting(let until): .waiting(until: until)
    case .awaitingToken: .awaitingToken
    case .connecting: .connecting
    case .handshaking: .handshaking
    case .greeting: .greeting
    case .open: .open
    case .closing: .closing
    case .ended(let end): .ended(end)
    }
  }
}

/// One connection, from TCP to its end.
final class ClientConnection {
  var socket: ClientSocket
  /// The shared state of a binary connection; nil for JSON.
  var binary: BinaryConnection?
  var lastHeard: Int64
  /// When input is due (uptime, ns); see `networkChanged`.
  var answersBy = Int64.max

  // Since `connected`.
  var openedAt: Int64?
  var budget = SendBudget()
  var nextPing = Int64.max
  /// Channels and views to leave; a new connection does not have them.
  var unsubscribes: [Unsubscribe] = []
  var wantsPing = false
  /// When the next early ping may be sent (uptime, ns).
  var nextEarlyPing = Int64.min
  /// The transport was full at the last `flush`.
  var isBlocked = false
  /// The cost of the last answer to a subscription so far.
  var missed: MissedEvents?
  /// Unanswered pings, in the order of sending.
  var pingsSent: [SentPing] = []
  /// The last answered ping: what was sent before it, and when its pong came (uptime, ns).
  var answeredPing: (sentThrough: UInt64, uptime: Int64)?
  /// When the queue may be sent again (uptime, ns), as requested by the hub.
  var queueNotBefore = Int64.min

  init(_ socket: consuming ClientSocket, now: Int64) {
    self.socket = socket
    lastHeard = now
  }
}

/// A client's state of one binary connection.
struct BinaryConnection {
  var reader = BinaryServerReader()
  /// The trip that a live fix named last.
  var tripBefore: Identifier?
}

/// An unanswered ping, and the newest number sent before it.
struct SentPing {
  var number: UInt64
  var sentThrough: UInt64
}

/// The answer to a subscription, with the missed events that follow it.
struct MissedEvents {
  var channel: Channel
  /// The number of the last of them.
  var through: UInt64
  /// Bytes so far, as the hub counts them.
  var bytes = 0
}
