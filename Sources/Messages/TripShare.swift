// A link by which somebody follows a trip: what is kept of it, and what its holder sees.
public import HubBytes

/// One share of a trip. Its holder is known by `holder`, a rider's id that is nobody's else.
public struct TripShare: Sendable, Equatable {
  public var id: Identifier
  /// By the hub's wall clock.
  public var created: Timestamp
  /// When it ends before its trip does.
  public var expires: Timestamp?

  public init(id: Identifier, created: Timestamp, expires: Timestamp?) {
    self.id = id
    self.created = created
    self.expires = expires
  }

  /// What the ids of holders begin with.
  public static let prefix = "share-"
  /// Characters with which the ids of all shares begin that one maker has made.
  public static let makerLength = 8

  /// The id of whoever has the link: `sub` of its token. A share's own id is 20 characters long.
  public var holder: Identifier { Identifier(TripShare.prefix + "\(id)") ?? id }

  /// Whether an id is that of a share's holder.
  public static func isHolder(_ id: Identifier) -> Bool {
    unsafe id.text.withBytes { unsafe $0.starts(with: prefix.utf8) }
  }
}

/// What stands in the place of a driver's id for whoever has a share: no two drivers can be told apart by it, nor can
/// two trips of one driver be found to be the same one's.
private let anyDriver = Identifier("driver")!

extension Publication {
  /// As the holder of a share may see it: nobody's id is in it, and nothing of fences or what a back end has posted.
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
    // Offers are told on drivers' channels alone, which no share opens.
    case .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats, .offer: break
    }
    return hidden
  }
}

extension Notification {
  /// What is not of the ride itself is told only by its number, without which there would be a gap.
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
  /// As the holder of a share may see it.
  public var withoutIDs: Subscribed {
    var hidden = self
    if hidden.snapshot?.trip?.driverID != nil { hidden.snapshot?.trip?.driverID = anyDriver }
    if hidden.snapshot?.position != nil { hidden.snapshot?.position?.driverID = anyDriver }
    return hidden
  }
}

extension TripReport {
  /// As the holder of a share may see it.
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
    return try timestamp(members(of: 0), .expires, bytes, time)
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
