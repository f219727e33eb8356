// Where a page of a list ends. To clients it is a word without meaning, to be given back for the next page.
//
// Each hub has numbers of its own for what it lists. Over several hubs the order is that of the numbers, and of the
// hubs' names where two have the same one: so a cursor is a number and a name, whatever the number of hubs, and hubs
// that come and go between two pages do not move it.
import HubMessages

public struct ListCursor: Sendable, Equatable {
  public enum Kind: String, Sendable {
    case drivers = "d"
    case trips = "t"
  }

  /// Of a driver's record, or a trip's number.
  public var number: UInt64
  /// The hub whose number that is: what has it was the last one that was shown. Nil where a hub is alone: its drivers
  /// go on with the number, and its trips below it.
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

  public func text(of kind: Kind) -> String {
    kind.rawValue + String(number, radix: 36) + (hub.map { "." + $0 } ?? "")
  }
}

extension DriverListQuery {
  /// As a hub of this name is asked: behind what was shown.
  func asked(of hub: String) -> DriverListQuery {
    var own = self
    own.lastHub = nil
    if let lastHub, hub <= lastHub { own.from += 1 }
    return own
  }
}

extension TripListQuery {
  /// As a hub of this name is asked: below what was shown.
  func asked(of hub: String) -> TripListQuery {
    var own = self
    own.lastHub = nil
    if let lastHub, hub > lastHub { own.below += 1 }
    return own
  }
}
