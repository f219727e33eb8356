// The end of a page of a list. To clients it is opaque, to be passed for the next page.
//
// Each hub numbers what it lists. In a cluster the order is by number, then by the hub's name; so a cursor is a number
// and a name, and hubs that join or leave between two pages do not move it.
import HubMessages

/// The end of a page: the last listed entry's number, and in a cluster its hub.
public struct ListCursor: Sendable, Equatable {
  /// The list, as the first character of the cursor's text.
  public enum Kind: String, Sendable {
    case drivers = "d"
    case trips = "t"
    /// Without a hub: each lists its own.
    case revocations = "v"
  }

  /// The number of a driver's record, of a trip, or of a revocation.
  public var number: UInt64
  /// The hub of the last listed entry. Nil for a single hub, where drivers continue from the number and trips below it.
  public var hub: String?

  public init(_ number: UInt64, hub: String? = nil) { (self.number, self.hub) = (number, hub) }

  /// Nil for what is no cursor of such a list.
  public init?(_ text: String, of kind: Kind) {
    let parts = text.dropFirst().split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let number = UInt64(first, radix: 36), number <= UInt64(Int64.max) else {
      return nil
    }
    self.init(number, hub: parts.count > 1 ? String(parts[1]) : nil)
    // A hub's name is an id of up to 32 characters.
    guard self.text(of: kind) == text, hub.map({ $0.utf8.count <= 32 && Identifier($0) != nil }) ?? true else {
      return nil
    }
  }

  /// The cursor as clients get it: the list's character, the number in base 36, and a point and the hub where there is
  /// one.
  public func text(of kind: Kind) -> String {
    kind.rawValue + String(number, radix: 36) + (hub.map { "." + $0 } ?? "")
  }
}

extension DriverListQuery {
  /// The query for a hub of this name: behind what was listed.
  func asked(of hub: String) -> DriverListQuery {
    var own = self
    own.lastHub = nil
    if let lastHub, hub <= lastHub { own.from += 1 }
    return own
  }
}

extension TripListQuery {
  /// The query for a hub of this name: below what was listed.
  func asked(of hub: String) -> TripListQuery {
    var own = self
    own.lastHub = nil
    if let lastHub, hub > lastHub { own.below += 1 }
    return own
  }
}
