// What a token grants beyond its role. In one object, so that a session whose token lists nothing pays one word.
public import HubBytes
public import HubMessages

/// An id, or a prefix of ids: `T1`, `zone7-*`, `*`.
public struct NamePattern: Sendable, Equatable {
  /// The id or the prefix.
  public let text: InlineText
  /// Whether it is a prefix.
  public let isPrefix: Bool

  /// Nil where the text without a `*` at its end is no id; `*` alone matches all.
  public init?(_ pattern: String) {
    let isPrefix = pattern.hasSuffix("*")
    let text = isPrefix ? String(pattern.dropLast()) : pattern
    guard text.isEmpty ? isPrefix : Identifier(text) != nil, let inline = InlineText(text) else { return nil }
    self.text = inline
    self.isPrefix = isPrefix
  }

  /// O(length), no allocation: called for each fix that names a trip.
  public func matches(_ id: Identifier) -> Bool {
    guard isPrefix else { return id.text == text }
    guard id.text.count >= text.count else { return false }
    return unsafe id.text.withBytes { name in
      unsafe text.withBytes { beginning in unsafe name.prefix(beginning.count).elementsEqual(beginning) }
    }
  }

  /// The pattern as it is written in a claim: `T1`, `zone7-*`.
  public var description: String { "\(text)" + (isPrefix ? "*" : "") }
}

/// A channel, or a kind of channel with a prefix of ids: `trip:T1`, `trip:zone7-*`, `driver:*`.
public struct ChannelPattern: Sendable, Equatable {
  /// The kinds that can be granted. Areas and places are open to riders and ops, and the channel `fleet` to ops,
  /// without a grant: `fleet` opens the feed of all vehicles over HTTP.
  public enum Kind: String, Sendable, CaseIterable {
    case trip, driver, fence, fleet
  }

  public let kind: Kind
  public let name: NamePattern

  /// Nil where the text is neither `fleet` nor `trip:`, `driver:` or `fence:` and a pattern of an id.
  public init?(_ pattern: String) {
    if pattern == Kind.fleet.rawValue, let all = NamePattern("*") {
      (kind, name) = (.fleet, all)
      return
    }
    guard let colon = pattern.firstIndex(of: ":"), let kind = Kind(rawValue: String(pattern[..<colon])),
      kind != .fleet,
      let name = NamePattern(String(pattern[pattern.index(after: colon)...]))
    else { return nil }
    self.kind = kind
    self.name = name
  }

  /// Whether the channel is of this kind and its id matches. No pattern matches areas, places or the fleet's channel.
  /// O(length), no allocation.
  public func matches(_ channel: Channel) -> Bool {
    switch (kind, channel) {
    case (.trip, .trip(let id)), (.driver, .driver(let id)), (.fence, .fence(let id)): name.matches(id)
    case (.trip, _), (.driver, _), (.fence, _), (.fleet, _): false
    }
  }

  /// The pattern as it is written in a claim: `trip:zone7-*`, `fleet`.
  public var description: String { kind == .fleet ? kind.rawValue : "\(kind.rawValue):\(name.description)" }
}

/// A session's own limits, instead of the hub's.
public struct SessionLimits: Sendable, Equatable {
  /// Units of work a second, on average; 0 for no limit. 0–10⁶. A short message is one.
  public var rate: Double?
  /// The burst, in units of work. 1–10⁶.
  public var burst: Double?

  public static let rates: ClosedRange<Double> = 0...1_000_000
  public static let bursts: ClosedRange<Double> = 1...1_000_000

  public init(rate: Double? = nil, burst: Double? = nil) {
    self.rate = rate
    self.burst = burst
  }
}

/// The lists of a token. Immutable and shared.
public final class Grants: Sendable {
  /// The trips that a rider may see, and that a driver is entitled to.
  public let trips: [NamePattern]
  /// Channels that may be subscribed to beside those of the role.
  public let channels: [ChannelPattern]
  public let limits: SessionLimits?
  /// `vehicleType` and `tags` of a driver; nil where the token has neither.
  public let vehicle: VehicleClaims?
  /// `jti`: the name by which the token can be revoked.
  public let tokenID: InlineText?
  /// `tier`: the operator's limits that hold where the token has none of its own.
  public let tier: InlineText?

  public init(
    trips: [NamePattern] = [], channels: [ChannelPattern] = [], limits: SessionLimits? = nil,
    vehicle: VehicleClaims? = nil, tokenID: InlineText? = nil, tier: InlineText? = nil
  ) {
    self.trips = trips
    self.channels = channels
    self.limits = limits
    self.vehicle = vehicle
    self.tokenID = tokenID
    self.tier = tier
  }

  /// A copy with another `jti`.
  public func named(_ tokenID: InlineText) -> Grants {
    Grants(trips: trips, channels: channels, limits: limits, vehicle: vehicle, tokenID: tokenID, tier: tier)
  }

  /// A copy with other limits of the session.
  public func limited(to limits: SessionLimits) -> Grants {
    Grants(trips: trips, channels: channels, limits: limits, vehicle: vehicle, tokenID: tokenID, tier: tier)
  }

  /// Whether `trips` has the trip. O(entries), no allocation.
  public func names(trip: Identifier) -> Bool {
    for pattern in trips where pattern.matches(trip) { return true }
    return false
  }

  /// Whether the feed of all vehicles may be read.
  public var opensVehicleFeed: Bool { channels.contains { $0.kind == .fleet } }

  /// Whether `channels` has the channel, or `trips` the trip of a trip's channel.
  public func opens(_ channel: Channel) -> Bool {
    if case .trip(let trip) = channel, names(trip: trip) { return true }
    for pattern in channels where pattern.matches(channel) { return true }
    return false
  }
}

extension Grants? {
  /// Whether both open the same channels and name the same trips. A renewed token differs in its `jti`.
  public func opensSame(as other: Grants?) -> Bool {
    (self?.trips ?? []) == (other?.trips ?? []) && (self?.channels ?? []) == (other?.channels ?? [])
  }
}

extension Grants: Equatable {
  /// Whether both grant the same and have the same `jti`.
  public static func == (a: Grants, b: Grants) -> Bool {
    a.trips == b.trips && a.channels == b.channels && a.limits == b.limits && a.vehicle == b.vehicle
      && a.tokenID == b.tokenID && a.tier == b.tier
  }
}
