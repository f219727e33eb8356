// The HTTP side of a connection, until it becomes a WebSocket or ends.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

/// The HTTP side of a connection: bytes that were not handled yet, and the request they belong to.
final class Exchange {
  var input = ByteBuffer()
  var parser = RequestParser()
  var request: (head: RequestHead, body: BodyReader)?
  var body = ByteBuffer()
  /// The hub was asked; nothing further is read from `input` until it answers.
  var isWaiting = false
  /// What is left of a long answer, and the room that it takes.
  var unsent: ArraySlice<UInt8>?
  var room: MemoryReservation?
  /// The trip that the hub was asked for.
  var pendingTrip: PendingTrip?
  /// The list that the hub was asked for, where the journal may have more of it.
  var pendingList: TripListQuery?
  /// The turn in which requests were handled last, how many, and the bytes of their answers.
  var turn: UInt64 = 0
  var handled = 0
  var answeredBytes = 0
  /// As many requests were handled as one turn may; reading has stopped until the others had their turn.
  var isStalled = false
  /// How the answer ends.
  var keepsAlive = true
  var isHead = false
  /// How the request's body, and the answer's, write timestamps.
  var time = TimeFormat.unixMilliseconds
  /// What to answer a driver's upgrade with once the hub admits it.
  var upgrade: Upgrade?
  /// When the connection is closed unless a request is complete by then (uptime, ns).
  var deadline: Int64
  /// Whom the socket goes to.
  let peer: SocketAddress
  /// It came in by the admin port.
  let isAdmin: Bool
  /// The peer is a proxy that is believed: who the client is, each request says.
  let isFromProxy: Bool
  /// The peer's address has too many connections: this one is here only to be told.
  var isOverAddressLimit = false
  /// By what the present request's address is charged; 0 where it is not.
  var rateKey: UInt64 = 0
  /// The web page that asks, where it may.
  var origin: String?
  /// The present request's credential, once it was looked at, and by which keys.
  var checked: (credential: Result<Credential, CredentialError>, generation: UInt64)?

  init(deadline: Int64, peer: SocketAddress, isAdmin: Bool, isFromProxy: Bool) {
    self.deadline = deadline
    self.peer = peer
    self.isAdmin = isAdmin
    self.isFromProxy = isFromProxy
  }

  func takePendingTrip() -> PendingTrip? {
    defer { pendingTrip = nil }
    return pendingTrip
  }

  func takePendingList() -> TripListQuery? {
    defer { pendingList = nil }
    return pendingList
  }

  /// Counts for a turn from here on.
  func enter(turn: UInt64) {
    guard turn != self.turn else { return }
    self.turn = turn
    handled = 0
    answeredBytes = 0
  }
}
