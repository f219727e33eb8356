// Tokens read back from the journal and written into snapshots.
import HubMessages

extension Credentials {
  // Families beyond a lowered limit end; their clients ask for new tokens. Revocations are always kept: without them
  // ended tokens would be valid again. What has expired meanwhile is forgotten an hour later: it is refused anyway, and
  // by then a clock that was wrong at the start may have been set right.

  mutating func load(_ record: DurableRecord) {
    switch record {
    case .tokenFamily(let family):
      if familyOfID[family.id] == nil { _ = register(family) }
    case .tokensRotated(let id, let serial, let time):
      guard let index = familyOfID[id] else { return }
      rotate(index, to: serial, at: time)
      families[index].hasGrace = true
    case .tokensSettled(let id): if let index = familyOfID[id] { families[index].hasGrace = false }
    case .tokenFamilyEnded(let id): if let index = familyOfID[id] { remove(family: index) }
    case .revocation(let revocation):
      if let index = revocationOfName[revocation.name] { remove(revocation: index) }
      _ = register(revocation)
    case .unrevoked(let name): if let index = revocationOfName[name] { remove(revocation: index) }
    case .audit: break  // for readers of the journal
    case .epoch, .trip, .tripForgotten, .eta, .event, .channel, .channelForgotten, .highestSequence, .fixes, .driver,
      .driverOffline, .driverForgotten, .highestTripNumber, .fence, .fenceDeleted, .stay, .stayEnded, .pair, .pairEnded,
      .offers, .offersForgotten:
      preconditionFailure("another domain's record")
    }
  }

  /// Ends loading. Where the end of a rotation's grace is not recorded, its answer may have been lost in the crash: the
  /// grace begins again.
  mutating func finishLoading(at start: Moment, _ deadlines: inout Deadlines) {
    if families.count > limits.tokenFamilies {
      let oldest = (0..<families.endIndex).filter { families.isInUse($0) }
        .sorted { families[$0].rotated < families[$1].rotated }
      for index in oldest.prefix(families.count - limits.tokenFamilies) { remove(family: index) }
    }
    for index in 0..<families.endIndex where families.isInUse(index) {
      if families[index].hasGrace {
        families[index].hasGrace = false
        beginGrace(of: index, at: start, &deadlines)
      }
      deadlines.arm(.tokenFamily, families.handle(of: index), at: start.uptime + Moment.longestLook)
    }
    for index in 0..<revocations.endIndex where revocations.isInUse(index) {
      hold(index, at: start, atLeast: HubLimits.revocationHoldMilliseconds, &deadlines)
    }
    change = RevocationChange(number: change.number)
  }

  /// All that is stored, in an order that can be read back.
  func forEachRecord<E: Error>(_ body: (DurableRecord) throws(E) -> Void) throws(E) {
    for index in 0..<families.endIndex where families.isInUse(index) {
      let family = families[index]
      try body(.tokenFamily(family))
      if family.hasGrace { try body(.tokensRotated(family.id, serial: family.serial, at: family.rotated)) }
    }
    for index in 0..<revocations.endIndex where revocations.isInUse(index) {
      try body(.revocation(revocations[index].revocation))
    }
  }
}
