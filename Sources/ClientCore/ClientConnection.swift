// What a client is doing, with all that belongs to it: a state has its connection, so that nothing of one is left for
// the next.
import HubMessages
import HubWebSocket

extension ClientSession {
  /// `State` with its data. Times are uptimes (ns) by when the state has to be over.
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

    /// Nil where TCP does not stand.
    var connection: ClientConnection? {
      switch self {
      case .idle, .waiting, .awaitingToken, .connecting, .ended: nil
      case .handshaking(let connection, _), .greeting(let connection, _), .open(let connection): connection
      case .closing(let closing): closing.connection
      }
    }
  }

  /// A connection that ends.
  struct Closing {
    /// Nil where TCP did not come about.
    let connection: ClientConnection?
    var cause: DisconnectCause
    let until: Int64
  }

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
  /// What both ends of a binary connection remember; nil on one that speaks JSON.
  var binary: BinaryConnection?
  var lastHeard: Int64
  /// Something has to be heard by then (uptime, ns); see `networkChanged`.
  var answersBy = Int64.max

  // Since `connected`.
  var openedAt: Int64?
  var budget = SendBudget()
  var nextPing = Int64.max
  /// Requests of the application that live only as long as the connection.
  var unsubscribes: [Unsubscribe] = []
  var wantsPing = false
  /// What the last answer to a subscription has cost so far.
  var missed: MissedEvents?
  /// Pings that were not answered yet, in order.
  var pingsSent: [SentPing] = []
  /// A ping that was answered: what had been sent before it, and when its pong came (uptime, ns).
  var answeredPing: (sentThrough: UInt64, uptime: Int64)?
  /// Nothing is taken from the queue before this uptime: the hub asked for patience.
  var queueNotBefore = Int64.min

  init(_ socket: consuming ClientSocket, now: Int64) {
    self.socket = socket
    lastHeard = now
  }
}

/// What a client remembers of one connection that speaks binary.
struct BinaryConnection {
  var reader = BinaryServerReader()
  /// The trip that was named last in a live fix.
  var tripBefore: Identifier?
}

/// A ping on its way, and up to which number the queue had been sent when it left.
struct SentPing {
  var number: UInt64
  var sentThrough: UInt64
}

/// The answer to a subscription, with the missed events that follow it.
struct MissedEvents {
  var channel: Channel
  /// The number of the last of them.
  var through: UInt64
  /// Bytes that have come so far, as the hub counts them.
  var bytes = 0
}
