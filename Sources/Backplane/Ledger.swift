// The ledger: what all hubs of a cluster must agree on. Who is a member, and whose each trip and driver is.
//
// A question is carried out whole or not at all, and those about one key one after the other. Its answer may not come
// (`unknown`): then it may have been carried out, and each can be asked again without harm.

/// A hub as the others know it.
public struct MemberRecord: Sendable, Equatable {
  public var name: String
  /// Rises with each start of a hub, of whatever name: a later process of this name has a higher one.
  public var incarnation: UInt64
  /// Where operators and other hubs find it.
  public var address: String
  public var version: String
  /// How it was at its last renewal; nil where that is not known.
  public var status: MemberStatus?

  public init(name: String, incarnation: UInt64, address: String, version: String, status: MemberStatus? = nil) {
    self.name = name
    self.incarnation = incarnation
    self.address = address
    self.version = version
    self.status = status
  }

  /// The form in which it is stored: incarnation, address and version, with spaces between; the version may have some
  /// itself.
  var text: String { "\(incarnation) \(address) \(version)" }

  init?(name: String, text: String) {
    let parts = text.split(separator: " ", maxSplits: 2)
    guard parts.count == 3, let incarnation = UInt64(parts[0]) else { return nil }
    self.init(name: name, incarnation: incarnation, address: String(parts[1]), version: String(parts[2]))
  }
}

/// How a member is, for operators.
public struct MemberStatus: Sendable, Equatable {
  /// How long ago it heard the other member that it has not heard for longest, in ms.
  public var lag: Int64
  /// Cells of its map that others watch, counted for each, and that it asks others for.
  public var cellsWatched: Int
  public var cellsAsked: Int

  public init(lag: Int64, cellsWatched: Int, cellsAsked: Int) {
    self.lag = lag
    self.cellsWatched = cellsWatched
    self.cellsAsked = cellsAsked
  }

  /// The form in which it is stored. More words may stand behind these.
  var text: String { "\(lag) \(cellsWatched) \(cellsAsked)" }

  init?(_ text: String) {
    let parts = text.split(separator: " ")
    guard parts.count >= 3, let lag = Int64(parts[0]), let watched = Int(parts[1]), let asked = Int(parts[2]) else {
      return nil
    }
    self.init(lag: lag, cellsWatched: watched, cellsAsked: asked)
  }
}

/// What is asked of the ledger.
public enum LedgerQuestion: Sendable, Equatable {
  /// An incarnation that no hub has had: above all before, and at least the engine's clock in seconds, so that it rises
  /// also where the engine has lost its memory.
  case incarnation
  /// This member is there for `leaseMilliseconds` more.
  case renew(MemberRecord, leaseMilliseconds: Int64)
  /// This member is gone.
  case leave(name: String, incarnation: UInt64)
  case members
  /// Whose `key` is, becomes this member's. With `takes` whoever had it; the generation rises, above `known` and the
  /// engine's clock in milliseconds. Without, only where nobody has it, this member has it, or who has it does so by a
  /// generation below `known`. `attempt`: one that takes and was carried out is not carried out again; 0 where that
  /// makes no difference.
  case claim(key: String, by: String, known: UInt64, takes: Bool, attempt: UInt64 = 0)
  /// Who owns `key`. Where nobody does, `asker` is told by the next who claims it, for a day.
  case locate(key: String, asker: String)
  /// Who owns `key`; changes nothing.
  case owner(key: String)
  /// `key` is nobody's any more, if it is this member's.
  case release(key: String, by: String)
}

/// What the ledger answers.
public enum LedgerAnswer: Sendable, Equatable {
  case incarnation(UInt64)
  case renewed
  /// A later incarnation has this member's name.
  case superseded(by: UInt64)
  case done
  case members([MemberRecord])
  /// It is the asker's now. `before`: another member that had it; `waiting`: who asked for it before it had an owner.
  case claimed(generation: UInt64, before: String?, waiting: [String])
  /// It stays another member's.
  case held(by: String, generation: UInt64)
  /// Nil where nobody has it.
  case owner(String?)
  /// No reply: it was carried out, or not.
  case unknown
  /// The engine refuses it: its own words.
  case refused(String)
}

/// What happens at the ledger.
public enum LedgerEvent: Sendable, Equatable {
  case answer(ticket: UInt64, LedgerAnswer)
  /// It can be asked: it was reached, and its settings are good. `warnings`: what is not as it should be.
  case up(node: String, warnings: [String])
  case down(node: String, String)
}

/// The ledger of a cluster. It belongs to one thread.
public protocol Ledger: AnyObject {
  var isUp: Bool { get }
  /// Asks a question, whose answer has this ticket; false where it cannot be asked now.
  func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool
  /// Appends what happened since the last time.
  func takeEvents(into events: inout [LedgerEvent])
}
