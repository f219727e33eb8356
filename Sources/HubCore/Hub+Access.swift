// Who may follow a trip, and how that ends: with the trip, or when it becomes another driver's.
//
// A credential opens a channel by what it names (Gateway's Credential.swift); who has part in a trip stands in the
// trip. After the end, live positions go on for the grace. Then the trip is closed: all its subscribers are let go, and
// what is kept of it (its events, for 24 h) is for its own rider, its own driver and ops, whatever a token names.
import HubMessages

extension Hub {
  /// Why a session may follow a channel.
  enum Access {
    /// It has part in the channel's trip.
    case party
    /// Its credential opens the channel.
    case granted
    case forbidden
  }

  func access(of actor: Actor, by grant: ChannelGrant, to channel: Channel) -> Access {
    guard case .trip(let id) = channel, let trip = findTrip(id) else {
      return grant == .onlyForParties ? .forbidden : .granted
    }
    if trips[trip].party(of: actor) != .stranger { return .party }
    if isOver(trip) { return .forbidden }
    return switch grant {
    case .granted: .granted
    case .whileUnclaimed: trips[trip].driverID == nil ? .granted : .forbidden
    case .onlyForParties: .forbidden
    }
  }

  /// A session's grants have changed: which channel is it, and does the session have part in it?
  mutating func name(_ handle: ChannelHandle, to session: SessionRef, _ actor: Actor) {
    let name = channels.name(Int(handle.index))
    let isParty = access(of: actor, by: .onlyForParties, to: name) == .party
    emit(.named(session, handle, name, isParty: isParty), to: session.loop)
  }

  /// The trip has a driver now: others may have followed it because it had none.
  ///
  /// This leaves at once and does not wait for the journal, because the driver's positions do not wait either. A crash
  /// that undoes it takes nothing from anybody: whoever was let go may subscribe again.
  mutating func tellClaimed(_ trip: Int) {
    guard let channel = trips[trip].channel, let driver = trips[trip].driverID else { return }
    let claimed = HubOutput.channelClaimed(
      ChannelHandle(index: UInt32(channel)), channels.name(channel), by: driver)
    var outlets = channels.outlets(channel)
    while let outlet = outlets.popFirst() {
      emit(claimed, to: UInt32(outlet))
    }
  }

  // MARK: After the end

  /// Whether an ended trip's grace is over. Looked at by the clock and not by the deadline's turn, which may come late.
  @inline(__always)
  func isOver(_ trip: Int) -> Bool { now.uptime >= trips[trip].closes }

  mutating func end(_ trip: Int) {
    trips[trip].ended = now.uptime
    trips[trip].endedAt = now.timestamp
    trips[trip].closes = now.uptime + nanoseconds(timings.tripGrace)
    recordTrip(trip)
    armEnded(trip, at: trips[trip].closes)
  }

  /// A trip that was read back goes on where it was, by the wall clock.
  mutating func resumeDeadlines(_ trip: Int) {
    guard let endedAt = trips[trip].endedAt else { return armSilence(trip) }
    let passed = max(0, now.timestamp.milliseconds - endedAt.milliseconds)
    let ended = now.uptime - min(passed, 1 << 40) * 1_000_000
    trips[trip].ended = ended
    trips[trip].closes = ended + nanoseconds(timings.tripGrace)
    armEnded(trip, at: trips[trip].closes)
  }

  private mutating func armEnded(_ trip: Int, at uptime: Int64) {
    deadlines.arm(.trip, Handle(index: UInt32(trip), generation: trips.generation(of: trip)), at: uptime)
  }

  /// The grace is over: its subscribers are let go. The retention is over: the trip is forgotten, and its events with
  /// it.
  mutating func checkEnded(_ trip: Int) {
    guard let ended = trips[trip].ended else { return }
    let forgets = ended + nanoseconds(timings.retention)
    if isOver(trip) { close(trip) }  // first, also where no turn came between the two: a machine that slept
    if now.uptime >= forgets {
      if storage.hasRoom { return forgetTrip(trip) }
      return armEnded(trip, at: now.uptime + nanoseconds(timings.storageRetry))
    }
    armEnded(trip, at: trips[trip].isClosed ? forgets : trips[trip].closes)
  }

  /// Closes a trip's channel if its time has come. True where it is closed.
  mutating func closeIfOver(_ channel: Channel) -> Bool {
    guard case .trip(let id) = channel, let trip = findTrip(id), isOver(trip) else { return false }
    close(trip)
    return true
  }

  private mutating func close(_ trip: Int) {
    guard !trips[trip].isClosed else { return }
    trips[trip].isClosed = true
    guard let channel = trips[trip].channel else { return }
    let ended = HubOutput.channelEnded(
      ChannelHandle(index: UInt32(channel)), channels.name(channel), .tripEnded)
    var outlets = channels.outlets(channel)
    while let outlet = outlets.popFirst() {
      emitStored(ended, to: UInt32(outlet))
    }
  }

  private mutating func forgetTrip(_ trip: Int) {
    if let channel = trips[trip].channel { forgetEvents(of: channel) }
    storage.write(.tripForgotten(trips[trip].id))
    removeTrip(trip)
  }

  mutating func removeTrip(_ trip: Int) {
    uncountBegunTrip(trip)
    if let rider = trips[trip].riderID, trips[trip].begunBy == .rider { riderTrips.remove(riderHash(rider)) }
    tripIDs.remove(hash: trips[trip].hash, index: trip)
    tripOrder.remove(trips[trip].number)
    trips.remove(
      trip, leaving: Trip(id: trips[trip].id, hash: 0, status: .cancelled, changed: trips[trip].changed, lastHeard: 0))
  }
}
