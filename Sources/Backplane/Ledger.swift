// The ledger: what all hubs of a cluster must agree on, members and the owners of trips and drivers.
//
// A question is handled atomically, and those about one key in order. Its answer may be lost (`unknown`): then it may
// have been carried out; all questions may be repeated without harm.

/// A hub as the others see it.
public struct MemberRecord: Sendable, Equatable {
  public var name: String
  /// Increases with each start of any hub: a later process of this name has a higher one.
  public var incarnation: UInt64
  /// Its address for operators and other hubs.
  public var address: String
  public var version: String
  /// Its state at its last renewal; nil where unknown.
  public var status: MemberStatus?

  public init(name: String, incarnation: UInt64, address: String, version: String, status: MemberStatus? = nil) {
    self.name = name
    self.incarnation = incarnation
    self.address = address
    self.version = version
    self.status = status
  }

  /// The stored form: incarnation, address and version, separated by spaces; the version may have some itself.
  var text: String { "\(incarnation) \(address) \(version)" }

  init?(name: String, text: String) {
    let parts = text.split(separator: " ", maxSplits: 2)
    guard parts.count == 3, let incarnation = UInt64(parts[0]) else { return nil }
    self.init(name: name, incarnation: incarnation, address: String(parts[1]), version: String(parts[2]))
  }
}

/// A member's state, for operators.
public struct MemberStatus: Sendable, Equatable {
  /// How long ago it heard from the member that it has not heard for longest, in ms.
  public var lag: Int64
  /// Cells of its map that others watch, counted for each, and that it requests from others.
  public var cellsWatched: Int
  public var cellsAsked: Int
  /// A digest of the ledgers that its file names; 0 where that is one.
  public var ledgers: UInt64

  public init(lag: Int64, cellsWatched: Int, cellsAsked: Int, ledgers: UInt64) {
    self.lag = lag
    self.cellsWatched = cellsWatched
    self.cellsAsked = cellsAsked
    self.ledgers = ledgers
  }

  /// The stored form. Further words may follow.
  var text: String { "\(lag) \(cellsWatched) \(cellsAsked) \(ledgers)" }

  init?(_ text: String) {
    let parts = text.split(separator: " ")
    guard parts.count >= 4, let lag = Int64(parts[0]), let watched = Int(parts[1]), let asked = Int(parts[2]),
      let ledgers = UInt64(parts[3])
    else { return nil }
    self.init(lag: lag, cellsWatched: watched, cellsAsked: asked, ledgers: ledgers)
  }
}

/// A question to the ledger.
public enum LedgerQuestion: Sendable, Equatable {
  /// A new incarnation: above all before, and at least the engine's clock in seconds, so that it increases even if the
  /// engine has lost its memory.
  case incarnation
  /// Renews this member's lease for `leaseMilliseconds`.
  case renew(MemberRecord, leaseMilliseconds: Int64)
  /// This member leaves.
  case leave(name: String, incarnation: UInt64)
  case members
  /// Makes this member the owner of `key`. With `seizes` from any owner; the generation becomes higher than `known` and
  /// the engine's clock in milliseconds. Without, only if nobody owns it, or this member does, or the owner's
  /// generation is below `known`. `attempt`: one that seizes is carried out only once; 0 where that does not matter.
  /// Answers to all claims name the owner before, for 7 days, until that one claims, releases or concedes it itself.
  case claim(key: String, by: String, known: UInt64, seizes: Bool, attempt: UInt64 = 0)
  /// The owner of `key`. If there is none, the next owner within a day is asked to notify `asker`.
  case locate(key: String, asker: String)
  /// The owner of `key`; changes nothing.
  case owner(key: String)
  /// Releases `key`, if it is this member's.
  case release(key: String, by: String)
  /// This member knows that `key` was taken from it.
  case concede(key: String, by: String)
}

/// The ledger's answer.
public enum LedgerAnswer: Sendable, Equatable {
  case incarnation(UInt64)
  /// `wasKnown`: it had a record of a member of this name.
  case renewed(wasKnown: Bool)
  /// A later incarnation has this member's name.
  case superseded(by: UInt64)
  case done
  case members([MemberRecord])
  /// The asker owns it. `before`: the owner before. `waiting`: the members to notify: those that asked while there was
  /// no owner, until an owner has claimed it again with the generation that came with their names, and former owners
  /// from which it was seized, which may not know it yet.
  case claimed(generation: UInt64, before: String?, waiting: [String])
  /// Another member keeps it.
  case held(by: String, generation: UInt64)
  /// Nil without an owner.
  case owner(String?)
  /// No reply: it may have been carried out.
  case unknown
  /// The engine refuses it, in its own words.
  case refused(String)
}

/// An event of the ledger.
public enum LedgerEvent: Sendable, Equatable {
  case answer(ticket: UInt64, LedgerAnswer)
  /// It is usable: reached, with valid settings. `warnings`: settings to correct.
  case up(node: String, warnings: [String])
  case down(node: String, String)
  case memory(LedgerMemory)
}

/// How full a ledger's node is.
public struct LedgerMemory: Sendable, Equatable {
  /// Bytes that it uses, and those that it may use; 0 for no limit.
  public var used: UInt64
  public var limit: UInt64

  public init(used: UInt64 = 0, limit: UInt64 = 0) {
    self.used = used
    self.limit = limit
  }

  /// The used part of `limit`; 0 if there is no limit.
  var share: Double { limit == 0 ? 0 : Double(used) / Double(limit) }
}

/// The ledger of a cluster. For one thread.
public protocol Ledger: AnyObject {
  var isUp: Bool { get }
  /// Asks a question, whose answer has this ticket; false where it is not usable now.
  func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool
  /// Appends the events since the last call.
  func takeEvents(into events: inout [LedgerEvent])
}
