// What the hub says about subscriptions, carried out for the sessions that it concerns.
import HubCore
import HubMessages

extension FanOut {
  /// From here on the session gets what is published on the channel; first how things stand, and what it missed.
  mutating func subscribed(
    _ session: inout Session, to channel: ChannelHandle, _ answer: Subscribed, missed: [Publication], isParty: Bool,
    now: Timestamp, telling inputs: inout HubInputs
  ) throws(MessageRefusal) {
    releaseHeld(of: channel)
    // The token may have been swapped while the hub was asked.
    guard session.open.rights.mayKeep(answer.channel, isParty: isParty) else {
      release(channel, &inputs)
      throw MessageRefusal(
        .forbidden, "the session's token does not open this channel any more", replyTo: answer.replyTo)
    }
    subscribe(
      session.recipient, &session.open.subscriptions, to: channel, answer, missed: missed, now: now, telling: &inputs)
  }

  /// The session leaves a channel, as it has asked for.
  mutating func unsubscribed(
    _ session: inout Session, from channel: ChannelHandle, _ answer: Unsubscribed, now: Timestamp,
    telling inputs: inout HubInputs
  ) {
    _ = unsubscribe(&session.open.subscriptions, from: channel, telling: &inputs)
    _ = send(.unsubscribed(answer), to: session.recipient, now: now)
  }

  /// Takes a session's subscription away and tells it why; nothing where it has none.
  mutating func end(
    _ session: inout Session, _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason,
    now: Timestamp, telling inputs: inout HubInputs
  ) {
    end(
      session.recipient, &session.open.subscriptions, channel,
      Unsubscribed(replyTo: nil, channel: name, reason: reason), now: now, telling: &inputs)
  }

  /// The channel is over for those of its subscribers of whom `isConcerned` holds.
  mutating func end(
    _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason, in sessions: inout SessionTable,
    where isConcerned: (SessionRights) -> Bool = { _ in true }, now: Timestamp, telling inputs: inout HubInputs
  ) {
    for subscriber in subscribers(of: channel) {
      let slot = Int(subscriber.connection.slot)
      guard isConcerned(sessions[slot].open.rights) else { continue }
      end(&sessions[slot], channel, name, reason, now: now, telling: &inputs)
    }
  }

  // MARK: Areas

  /// The session watches these cells, instead of those that the view had before. The hub has counted all of them as
  /// subscribed to.
  mutating func watching(
    _ session: inout Session, _ answer: Subscribed, _ cells: [ChannelHandle], _ limits: borrowing Limits,
    _ admissions: Admissions, now: Timestamp, telling inputs: inout HubInputs
  ) throws(MessageRefusal) {
    let rights = session.open.rights
    do throws(WatchRefusal) {
      guard rights.mayKeep(answer.channel, isParty: false) else { throw .subscriptions }
      let identity = IdentityKey(rights.credential)
      try watch(
        cells, answer, session.recipient, &session.open.subscriptions,
        mayWatch: { admissions.watches(rights.role, identity, more: $0) }, now: now, telling: &inputs)
    } catch {
      release(cells, &inputs)
      switch error {
      case .subscriptions:
        throw MessageRefusal(
          .rateLimited,
          "a session has at most \(limits.subscriptionsPerSession) subscriptions; each cell of an area is one",
          replyTo: answer.replyTo, retryAfter: 1, at: .subscriptions)
      case .cells:
        throw MessageRefusal(
          .rateLimited,
          "one \(rights.role.name) watches at most \(limits.areasPerIdentity[rights.role]) cells of areas, over all "
            + "its sessions (max-areas-per-\(rights.role.name))",
          replyTo: answer.replyTo, retryAfter: 1, at: .areasPerIdentity)
      }
    }
  }

  /// Cells that the hub has counted and nobody watches.
  mutating func release(_ cells: [ChannelHandle], _ inputs: inout HubInputs) {
    for cell in cells { release(cell, &inputs) }
  }

  /// The session ends a view, as it has asked for.
  mutating func viewEnded(
    _ session: inout Session, _ messageID: MessageID, _ name: Unsubscribe, _ admissions: Admissions, now: Timestamp,
    telling inputs: inout HubInputs
  ) throws(MessageRefusal) {
    let channel: Channel
    let view = endView(name, session.recipient.slot, &session.open.subscriptions, telling: &inputs)
    switch (view, name) {
    case (let view?, _):
      let rights = session.open.rights
      _ = admissions.watches(rights.role, IdentityKey(rights.credential), more: -view.cells.count)
      channel = view.channel
    case (nil, .channel(let named)): channel = named
    case (nil, .view):
      throw MessageRefusal(.unknownChannel, "there is no view of that name", replyTo: messageID)
    }
    _ = send(
      .unsubscribed(Unsubscribed(replyTo: messageID, channel: channel, reason: .asked)), to: session.recipient, now: now
    )
  }
}
