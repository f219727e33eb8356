// Areas on a loop: which cells a session watches under which name, one write a tick for all of them, and whole cells
// for those who begin or have fallen behind.
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubRuntime
import HubTransport

/// What a loop keeps of areas.
struct LoopAreas {
  /// A part of the map that a session watches.
  struct View {
    /// The client's name for it; nil where it gave none, and then its channel is its name.
    var id: InlineText?
    var channel: Channel
    var cells: [ChannelHandle]
  }

  /// By slot.
  var views: [Int: [View]] = [:]
  /// The updates of a tick that is not all there yet.
  var pending: [(channel: ChannelHandle, publication: Publication)] = []
  /// Whole cells that came while a tick was not all there: they are newer than what it brings.
  var waiting: [(session: SessionRef, channel: ChannelHandle, publication: Publication)] = []
  var whole = WholeCells()
}

/// Whole cells as they were encoded in this second: a map that opens on ten thousand phones is encoded once.
struct WholeCells {
  private struct Key: Hashable {
    var number: UInt64
    var encoding: Encoding
  }

  private var frames: [Key: [UInt8]] = [:]
  private var bytes = 0

  func frame(_ number: UInt64, _ encoding: Encoding) -> [UInt8]? {
    frames[Key(number: number, encoding: encoding)]
  }

  mutating func keep(_ frame: [UInt8], _ number: UInt64, _ encoding: Encoding, limit: Int) {
    guard bytes + frame.count <= limit else { return }
    bytes += frame.count
    frames[Key(number: number, encoding: encoding)] = frame
  }

  mutating func removeAll() {
    if frames.isEmpty { return }
    frames = [:]
    bytes = 0
  }
}

extension SessionLoop {
  /// Why a role may not watch such an area; nil where it may. What only ops may is forbidden to others, as in queries.
  func areaFault(_ channel: Channel, _ role: Role) -> (code: ErrorCode, text: String)? {
    switch channel {
    case .area(let cell):
      if role == .ops || cell.precision >= 5 { return nil }
      return (.forbidden, "a \(role.name) may watch areas of 5 to 8 characters")
    case .nearby(_, let radius):
      let limit = role == .ops ? limits.areaRadiusMeters : PublicAudience.maximumRadiusMeters
      if radius <= limit { return nil }
      let who = role == .ops ? "ops" : "a \(role.name)"
      return (role == .ops ? .badMessage : .forbidden, "\(who) may watch up to \(Int(limit)) m around a place")
    case .trip, .driver, .fence, .fleet: return nil
    }
  }

  // MARK: Views

  /// The hub has answered: the session watches these cells, instead of those that the view had before.
  mutating func watching(_ session: SessionRef, _ answer: Subscribed, _ cells: [ChannelHandle]) {
    guard let connection = connection(of: session), sessions[Int(connection.slot)].phase == .open else {
      for cell in cells { inputs.append(.released(loop: index, cell)) }
      return
    }
    let slot = Int(connection.slot)
    sessions[slot].subscriptions -= 1
    subscriptionAnswered(slot)
    var views = areas.views[slot] ?? []
    let place = views.firstIndex { $0.id == answer.viewID && (answer.viewID != nil || $0.channel == answer.channel) }
    let before = place.map { views[$0].cells } ?? []
    let new = cells.filter { subscriptions.subscriber(of: $0, first: sessions[slot].firstSubscription) == nil }
    guard mayKeep(slot, answer.channel, isParty: false),
      Int(sessions[slot].subscriptions) + new.count <= limits.subscriptionsPerSession
    else {
      for cell in cells { inputs.append(.released(loop: index, cell)) }
      counters.count(.subscriptions)
      return refuse(
        slot, answer.replyTo, .rateLimited,
        "a session has at most \(limits.subscriptionsPerSession) subscriptions; each cell of an area is one",
        retryAfter: 1)
    }
    guard mayWatch(slot, more: cells.count - before.count) else {
      for cell in cells { inputs.append(.released(loop: index, cell)) }
      counters.count(.areasPerIdentity)
      let role = sessions[slot].role
      return refuse(
        slot, answer.replyTo, .rateLimited,
        "one \(role.name) watches at most \(limits.areasPerIdentity[role]) cells of areas, over all its sessions "
          + "(max-areas-per-\(role.name))",
        retryAfter: 1)
    }
    let view = LoopAreas.View(id: answer.viewID, channel: answer.channel, cells: cells)
    if let place { views[place] = view } else { views.append(view) }
    areas.views[slot] = views
    watch(slot, cells)
    leave(slot, before)
    send(.subscribed(answer), to: slot)
    if !new.isEmpty { inputs.append(.wholeAreas(session, new)) }
  }

  /// Counts cells of a session's views among those of its identity; false where these would be too many.
  private func mayWatch(_ slot: Int, more: Int) -> Bool {
    guard more != 0, let credential = sessions[slot].credential else { return true }
    return shared.admissions.watches(credential.role, IdentityKey(credential), more: more)
  }

  /// Subscribes to the cells that are new to the session; the hub has counted all of them.
  private mutating func watch(_ slot: Int, _ cells: [ChannelHandle]) {
    let encoding = Encoding(form: sessions[slot].form, isCompressed: sharesCompression(slot))
    var first = sessions[slot].firstSubscription
    for cell in cells {
      if subscriptions.add(
        sessions[slot].connection, encoding: encoding, to: cell, isBehind: true, first: &first)
      {
        sessions[slot].subscriptions += 1
      } else {
        inputs.append(.released(loop: index, cell))
      }
    }
    sessions[slot].firstSubscription = first
  }

  /// Leaves cells that no view of the session has any more.
  private mutating func leave(_ slot: Int, _ cells: [ChannelHandle]) {
    let views = areas.views[slot] ?? []
    for cell in cells where !views.contains(where: { $0.cells.contains(cell) }) { _ = drop(slot, cell) }
  }

  mutating func viewEnded(_ session: SessionRef, _ messageID: MessageID, _ name: Unsubscribe) {
    guard let connection = connection(of: session), sessions[Int(connection.slot)].phase == .open else { return }
    let slot = Int(connection.slot)
    var views = areas.views[slot] ?? []
    let place = views.firstIndex { view in
      switch name {
      case .view(let id): view.id == id
      case .channel(let channel): view.channel == channel
      }
    }
    switch (place, name) {
    case (let place?, _):
      let view = views.remove(at: place)
      areas.views[slot] = views.isEmpty ? nil : views
      _ = mayWatch(slot, more: -view.cells.count)
      leave(slot, view.cells)
      send(.unsubscribed(Unsubscribed(replyTo: messageID, channel: view.channel, reason: .asked)), to: slot)
    case (nil, .channel(let channel)):
      send(.unsubscribed(Unsubscribed(replyTo: messageID, channel: channel, reason: .asked)), to: slot)
    case (nil, .view): refuse(slot, messageID, .unknownChannel, "there is no view of that name")
    }
  }

  // MARK: Sending

  /// A tick is all there: each session gets what changed in its cells, with one write.
  mutating func fanOutAreas() {
    var behind: [UInt32] = []
    for (channel, publication) in areas.pending {
      var encoded = EncodedFrames()
      for subscriber in subscriptions.subscribers(of: channel) where !subscriber.isBehind {
        // What it has not read yet is enough: the newest state follows when it has.
        guard !loop.isBlocked(subscriber.connection) else {
          behind.append(subscriber.node)
          continue
        }
        let frame = encoded[subscriber.encoding] ?? encode(publication, on: channel, subscriber.encoding, &encoded)
        send(frame, to: subscriber.connection)
        counters.publicationsOut += 1
        counters.areaUpdatesOut += 1
      }
      for node in behind { subscriptions.setBehind(node, true) }
      counters.areaUpdatesSkipped += UInt64(behind.count)
      behind.removeAll(keepingCapacity: true)
      flushIfLarge()
    }
    areas.pending.removeAll(keepingCapacity: true)
    areas.whole.removeAll()
    let waiting = areas.waiting
    areas.waiting = []
    for (session, channel, publication) in waiting { sendWhole(session, channel, publication) }
  }

  /// A cell as it is, for a session that has asked for it.
  mutating func sendWhole(_ session: SessionRef, _ channel: ChannelHandle, _ publication: Publication) {
    guard areas.pending.isEmpty else { return areas.waiting.append((session, channel, publication)) }
    guard let connection = connection(of: session),
      let subscriber = subscriptions.subscriber(
        of: channel, first: sessions[Int(connection.slot)].firstSubscription),
      subscriber.isBehind, !loop.isBlocked(connection)  // or it asks again when it has read what waits
    else { return }
    send(wholeFrame(publication, on: channel, subscriber.encoding), to: connection)
    subscriptions.setBehind(subscriber.node, false)
    counters.publicationsOut += 1
    counters.wholeAreasOut += 1
  }

  private mutating func wholeFrame(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ encoding: Encoding
  ) -> Range<Int> {
    if let known = areas.whole.frame(publication.number, encoding) {
      let start = loop.arena.count
      loop.arena.append(known)
      return start..<loop.arena.count
    }
    var encoded = EncodedFrames()
    let frame = encode(publication, on: channel, encoding, &encoded)
    areas.whole.keep(
      loop.arena.withBytes { Array($0[frame]) }, publication.number, encoding, limit: limits.areaCacheBytes)
    return frame
  }

  /// The session has read everything: it gets the cells whose changes it missed.
  mutating func catchUp(_ slot: Int) {
    guard areas.views[slot] != nil else { return }
    var missed: [ChannelHandle] = []
    let first = sessions[slot].firstSubscription
    subscriptions.forEach(first: first) { channel in
      if subscriptions.subscriber(of: channel, first: first)?.isBehind == true { missed.append(channel) }
    }
    guard !missed.isEmpty else { return }
    inputs.append(.wholeAreas(reference(sessions[slot].connection), missed))
    armLoopTimer()
  }
}
