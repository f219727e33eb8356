// Who may follow a trip.
//
// A credential opens a channel by what it names (Gateway's Credential.swift); parties are in the trip. After the end,
// live positions continue for the grace. Then the trip is closed: all its subscribers are unsubscribed, and what is
// kept of it (its events, for 24 h) is only for its own rider, its own driver and ops, whatever a token names.
import HubMessages

/// Why a session may follow a channel.
enum ChannelAccess {
  /// It is a party of the channel's trip.
  case party
  /// Its credential opens the channel.
  case granted
  case forbidden
}

extension Trips {
  /// Throws where an actor may not follow a channel, with the same text whether or not there is such a trip.
  func checkAccess(
    of actor: Actor, by grant: ChannelGrant, to channel: Channel, at now: Moment
  ) throws(ErrorReply) -> ChannelAccess {
    let access = access(of: actor, by: grant, to: channel, at: now)
    if access != .forbidden { return access }
    throw ErrorReply(code: .forbidden, message: "your credential does not open this channel, or its trip is over")
  }

  /// Whether an actor may follow a channel, a trip's or another.
  func access(of actor: Actor, by grant: ChannelGrant, to channel: Channel, at now: Moment) -> ChannelAccess {
    guard case .trip(let id) = channel, let trip = find(id) else {
      return grant == .onlyForParties || actor.isShareHolder ? .forbidden : .granted
    }
    return self[trip].access(of: actor, by: grant, at: now)
  }
}

extension Trip {
  func access(of actor: Actor, by grant: ChannelGrant, at now: Moment) -> ChannelAccess {
    if actor.isShareHolder, !isShared(with: actor, at: now.timestamp) { return .forbidden }
    if party(of: actor) != .stranger { return .party }
    if isOver(at: now.uptime) { return .forbidden }
    return switch grant {
    case .granted: .granted
    case .whileUnclaimed: driverID == nil ? .granted : .forbidden
    case .onlyForParties: .forbidden
    }
  }
}
