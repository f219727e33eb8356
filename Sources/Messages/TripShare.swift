// A link to follow a trip: its data, and what its holder sees.
public import HubBytes

/// One share of a trip. Its holder has the unique rider id `holder`.
public struct TripShare: Sendable, Equatable {
  public var id: Identifier
  /// By the hub's wall clock.
  public var created: Timestamp
  /// When the share ends, if before the trip does; nil where it ends with the trip.
  public var expires: Timestamp?

  public init(id: Identifier, created: Timestamp, expires: Timestamp?) {
    self.id = id
    self.created = created
    self.expires = expires
  }

  /// The beginning of holders' ids.
  public static let prefix = "share-"
  /// The number of leading characters that the ids of all shares of one maker have in common.
  public static let makerLength = 8

  /// The id of the link's holder: `sub` of its token. A share's own id has 20 characters.
  public var holder: Identifier { Identifier(TripShare.prefix + "\(id)") ?? id }

  /// Whether an id is that of a share's holder.
  public static func isHolder(_ id: Identifier) -> Bool {
    unsafe id.text.withBytes { unsafe $0.starts(with: prefix.utf8) }
  }
}

/// Replaces drivers' ids for holders of shares, so that neither drivers nor two trips of one driver can be recognised.
private let anyDriver = Identifier("driver")!

extension Publication {
  /// The publication for holders of shares: without ids, fences and posted notifications.
  public var withoutIDs: Publication {
    var hidden = self
    switch body {
    case .driverLocation(var location):
      location.driverID = anyDriver
      hidden.body = .driverLocation(location)
    case .tripUpdate(var update):
      if update.driverID != nil { update.driverID = anyDriver }
      hidden.body = .tripUpdate(update)
    case .notification(let made): hidden.body = .notification(made.withoutIDs)
    // Offers are published only on drivers' channels, which no share opens.
    case .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats, .offer: break
    }
    return hidden
  }
}

extension Notification {
  /// The notification for holders of shares. One that is not about the ride keeps only its number, to avoid a gap.
  fileprivate var withoutIDs: Notification {
    switch kind {
    case .driverArriving, .driverArrived, .offRoute, .driverOffline, .driverOnline, .unserved:
      var hidden = self
      if driverID != nil { hidden.driverID = anyDriver }
      hidden.content = nil
      return hidden
    case .fenceEnter, .fenceExit, .fenceDwell, .hazard, .speeding, .message:
      return Notification(
        kind: .message, title: "Hidden", body: "A shared link does not show this.", driverID: nil, sequence: sequence)
    }
  }
}

extension Subscribed {
  /// The answer for holders of shares.
  public var withoutIDs: Subscribed {
    var hidden = self
    if hidden.snapshot?.trip?.driverID != nil { hidden.snapshot?.trip?.driverID = anyDriver }
    if hidden.snapshot?.position != nil { hidden.snapshot?.position?.driverID = anyDriver }
    return hidden
  }
}

extension TripReport {
  /// The report for holders of shares.
  public var withoutIDs: TripReport {
    var hidden = self
    if hidden.driverID != nil { hidden.driverID = anyDriver }
    hidden.riderID = nil
    return hidden
  }
}

extension JSONTape {
  /// The body of `POST /v1/trips/{id}/shares`.
  func shareExpiry(_ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> Timestamp? {
    guard self[0].kind == .object else { throw ValidationError(.unknown, "expected an object") }
    return try clientTimestamp(members(of: 0), .expires, bytes, time, early: .badMessage)
  }
}

extension JSONWriter {
  /// Appends a share's members without braces.
  public static func writeMembers(_ share: TripShare, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("\"shareId\":", share.id)
    buffer.append(",\"created\":", share.created, as: time)
    buffer.append(",\"expires\":", share.expires, as: time)
  }
}
