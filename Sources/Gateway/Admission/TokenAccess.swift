// The keys, the policy and the revocation list that a server goes by, and how loops come to see a new one.
//
// Whoever reads the files makes a new value and hands it to the server; each loop picks it up when it is woken. Nothing
// is locked on the way of a message: a loop works with the value that it has.
import HubMessages
import HubSystem
public import HubTokens
import Synchronization

/// What decides whether a token is accepted. Immutable.
public struct TokenAccess: Sendable {
  public let verifier: TokenVerifier
  /// What checking a token counts for beside the request, in units (`WorkUnits`): a public key's signature takes up to
  /// 150 µs.
  let unitsOfCheck: Int
  public var revoked: RevocationList
  /// Keys of phones (protocol/phones.md).
  public var devices = DeviceKeys()

  public init(verifier: TokenVerifier, revoked: RevocationList = RevocationList()) {
    self.verifier = verifier
    unitsOfCheck = verifier.keys.keys.contains { $0.algorithm != .hs256 } ? 5 : 0
    self.revoked = revoked
  }

  /// The token's claims, if it holds at `now` and is not revoked.
  func check(_ token: some Collection<UInt8>, now: Timestamp) throws(TokenError) -> Claims {
    let claims = try verifier.verify(token, now: now)
    guard !revoked.contains(subject: claims.subject, tokenID: claims.grants?.tokenID) else { throw .revoked }
    return claims
  }
}

/// The keys that a loop checks tokens with, and the list of those that are revoked.
struct CurrentAccess {
  private let board: AccessBoard
  private(set) var generation: UInt64
  /// Nil where no tokens are taken.
  private(set) var value: TokenAccess?

  init(_ board: AccessBoard) {
    self.board = board
    generation = board.generation  // before the value: at worst it is picked up twice
    value = board.current
  }

  /// Takes the newest value; false where there is no new one.
  mutating func pickUp() -> Bool {
    let newest = board.generation
    guard newest != generation else { return false }
    generation = newest
    value = board.current
    return true
  }
}

/// Where loops look for the newest value.
final class AccessBoard: Sendable {
  private let access: Locked<TokenAccess?>
  /// Counts the values, so that a loop sees without the lock that it has the newest.
  private let newest = Atomic<UInt64>(0)

  init(_ access: TokenAccess?) { self.access = Locked(access) }

  var generation: UInt64 { newest.load(ordering: .acquiring) }

  var current: TokenAccess? { access.withLock { $0 } }

  func replace(_ new: TokenAccess) {
    access.withLock { $0 = new }
    newest.add(1, ordering: .releasing)
  }
}
