// One connection as the gateway sees it: first HTTP, then perhaps a WebSocket session.
//
// All of it lies in one struct of the loop's table, so that an idle session costs its bytes and nothing on the heap;
// what only some connections need, or only for some of the time (a request that is still coming, a token), is an
// object.
import HubBytes
import HubCore
import HubMessages
import HubRuntime
import HubTokens
import HubTransport
import HubWebSocket

struct Session: ~Copyable {
  enum Phase: UInt8 {
    /// The slot is not in use.
    case free
    /// Speaks HTTP.
    case http
    /// A driver's upgrade waits for the hub's word.
    case admitting
    /// A WebSocket session.
    case open
    /// A close frame was sent; what comes is dropped until the peer's.
    case closing
  }

  var connection = ConnectionID.none
  var phase = Phase.free
  var role = HubMessages.Role.rider
  var form = MessageForm.json(.unixMilliseconds)
  /// How the session's messages leave: `form`, compressed or not.
  var encoding = Encoding(Encoding.Row(form: .json(.unixMilliseconds)))
  /// The session has spent more than it had, and was not seen to be level since.
  var isInDebt = false
  /// Reading has stopped, and what came waits, because the session was in debt when it came.
  var isPaused = false
  /// A ping was sent since the peer was last heard.
  var wasPinged = false
  /// It keeps input beyond what is free: see SessionLoop+Incomplete.
  var keepsInput = false
  var subscriptions = SessionSubscriptions()
  /// When the last bytes came from the peer (uptime, ns).
  var lastHeard: Int64 = 0
  var bucket = TokenBucket(burst: 0, now: 0)
  var frames = FrameReader(role: .server)
  private var compactID: CompactIdentifier?
  /// What the session's token says; nil for development's word.
  var token: SessionToken?
  /// What the session is blamed for; nil while there is nothing.
  var excess: Excess?
  /// A request that is not complete, or is being answered.
  var exchange: Exchange?
  /// Frames that wait until the peer has read what it asked for.
  var held: HeldInput?

  init() {}

  var recipient: Recipient { Recipient(connection: connection, encoding: encoding) }

  var id: Identifier? {
    get { compactID?.identifier }
    set { compactID = newValue.map(CompactIdentifier.init) }
  }

  var credential: Credential? {
    id.map { Credential(role: role, id: $0, authority: token.map { .token($0.grants) } ?? .development) }
  }
}

/// What a session's token says of it. Immutable; `refresh` puts another in its place.
final class SessionToken {
  /// When the session ends because the token's time is over (milliseconds since 1970).
  let expires: Int64
  /// What the token lists; nil where it lists nothing.
  let grants: Grants?

  init(expires: Int64, grants: Grants?) {
    self.expires = expires
    self.grants = grants
  }
}

/// Messages at fault and messages beyond the rate. Most sessions never have any, so they don't carry the room for it.
final class Excess {
  var badMessages = 0
  /// Uptime in ns: start of the bad messages' window; since when over the rate; when reading was last resumed.
  var badMessagesSince: Int64 = 0
  var overRateSince: Int64 = 0
  var resumedAt = Int64.min / 2
  var wasWarnedOfRate = false
}

/// The sessions of one loop, by connection slot: in chunks that never move, so that a table of 100,000 grows without
/// copying and without leaving a hole of its old size.
struct SessionTable: ~Copyable {
  // All its places are initialised when it grows, until `deinit`.
  private var table = ChunkTable<Session>()

  init() {}

  deinit {
    for slot in 0..<endIndex { table.pointer(slot).deinitialize(count: 1) }
  }

  /// One more than the largest slot that may be asked for.
  var endIndex: Int { table.capacity }

  mutating func makeRoom(for slot: Int) {
    while endIndex <= slot {
      let first = endIndex
      table.grow()
      for slot in first..<endIndex { table.pointer(slot).initialize(to: Session()) }
    }
  }

  /// In-place access. (A coroutine accessor would cost a heap allocation where it is not inlined.)
  subscript(slot: Int) -> Session {
    @inline(__always) unsafeAddress { UnsafePointer(pointer(slot)) }
    @inline(__always) unsafeMutableAddress { pointer(slot) }
  }

  @inline(__always)
  private func pointer(_ slot: Int) -> UnsafeMutablePointer<Session> {
    precondition(slot >= 0 && slot < endIndex)
    return table.pointer(slot)
  }
}
