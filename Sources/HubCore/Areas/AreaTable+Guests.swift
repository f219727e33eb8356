// Drivers of other hubs in cells that are watched here. They are in the same cells as this hub's own drivers, under
// numbers of their own, so that watchers see one fleet.
//
//     another hub's tick → guests are updated → noted → this hub's next tick looks at them as at its own
//
// This hub publishes its own drivers to other hubs through cells with the audience `peers`, which have no guests.
import HubBytes
import HubGeo
import HubMessages

extension UInt32 {
  /// The guest's index in its table; nil for a driver of this hub.
  fileprivate var guest: Int? { self & Guests.bit != 0 ? Int(self & ~Guests.bit) : nil }
}

/// A driver in a tick: one of this hub's, or a guest.
struct AreaDriver {
  let number: UInt32
  let id: Identifier
  /// Decides which drivers of a crowded cell are shown; constant from tick to tick.
  let rank: UInt32
  let status: DriverStatus
  let isOnline: Bool
  var lastTripEnded: Int64
  /// Morton keys of its position: for watchers here and for other hubs; nil where it is hidden from them.
  var key: UInt64?
  var ownKey: UInt64?

  var isAvailable: Bool { key != nil && isOnline && status == .available }

  func key(for audience: AreaAudience) -> UInt64? { audience == .peers ? ownKey : key }
}

extension AreaTable {
  // MARK: What other hubs say

  /// Takes an update from another hub, or its loss; false where the table of guests is full.
  mutating func take(_ input: ClusterInput, _ drivers: borrowing Drivers) -> Bool {
    defer { boundSweeps(drivers) }
    if case .area(let update, let peer, let endsSnapshot) = input {
      return take(update, from: peer, endsSnapshot: endsSnapshot, drivers)
    }
    // That hub's drivers are not known any more.
    if case .areasLost(let peer) = input, !guests.isEmpty { guests.endAll(of: peer) }
    return true
  }

  private mutating func take(
    _ update: AreaUpdate, from peer: UInt32, endsSnapshot: Bool, _ drivers: borrowing Drivers
  ) -> Bool {
    if update.isFull { guests.begin(update.cell, of: peer) }
    var isTaken = true
    for (seen, details) in zip(update.drivers, update.details) where !take(seen, details, from: peer, drivers) {
      isTaken = false
    }
    for id in update.left {
      guard let guest = guests.find(id), guests[guest].peer == peer else { continue }
      // Outside of the cell, it has moved to another one, whose update has come already.
      if update.cell.contains(key: GridPoint(guests[guest].seen.coordinate).mortonCode) { drop(guest, drivers) }
    }
    if endsSnapshot { guests.end(update.cell, of: peer) }
    return isTaken
  }

  private mutating func take(
    _ seen: AreaUpdate.Driver, _ details: AreaUpdate.Details, from peer: UInt32, _ drivers: borrowing Drivers
  ) -> Bool {
    let isWatched = interest.covers(GridPoint(seen.coordinate).mortonCode)
    guard let known = guests.find(seen.driverID) else {
      guard isWatched else { return true }
      guard let new = guests.insert(seen, details, of: peer) else { return false }
      note(guest: new, drivers)
      return true
    }
    guard guests.take(seen, details, of: known, from: peer) else { return true }
    if isWatched { note(guest: known, drivers) } else { drop(known, drivers) }
    return true
  }

  /// Finishes the oldest sweeps at once while there are more than their limit.
  private mutating func boundSweeps(_ drivers: borrowing Drivers) {
    while guests.sweeps.count > HubLimits.guestSweeps {
      var budget = guests.count + 1
      for guest in guests.nextSwept(interest, &budget) ?? [] { drop(Int(guest), drivers) }
    }
  }

  private mutating func drop(_ guest: Int, _ drivers: borrowing Drivers) {
    guard !guests[guest].isGone else { return }
    guests.end(guest)
    note(guest: guest, drivers)
  }

  /// Notes the guest, and this hub's own driver of that id, for the next tick.
  private mutating func note(guest: Int, _ drivers: borrowing Drivers) {
    if let own = drivers.find(guests[guest].seen.driverID) { note(own) }
    guard !guests[guest].area.isNoted else { return }
    if isActive {
      guests[guest].area.isNoted = true
      noted.append(UInt32(guest) | Guests.bit)
    } else if guests[guest].isGone {
      guests.remove(guest)  // no cell can hold it
    }
  }

  /// Removes guests that no hub publishes or nobody watches any more.
  mutating func sweepGuests(_ drivers: borrowing Drivers, _ budget: inout Int) {
    while budget > 0, let swept = guests.nextSwept(interest, &budget) {
      for guest in swept { drop(Int(guest), drivers) }
    }
  }

  /// Frees a guest that is gone. A tick that renames may look at a guest twice; the second time it is freed already.
  mutating func endLooking(at number: UInt32) {
    guard let guest = number.guest, guests.isGone(guest) else { return }
    precondition(guests[guest].area.first == DriverArea.none, "who is gone is in no cell")
    guests.remove(guest)
  }

  // MARK: Either

  func areaDriver(_ number: UInt32, _ drivers: borrowing Drivers) -> AreaDriver {
    if let guest = number.guest { return areaDriver(guest: guest, drivers) }
    let driver = Int(number)
    var found = AreaDriver(
      number: number, id: drivers[driver].id, rank: drivers[driver].areaRank, status: drivers[driver].status,
      isOnline: drivers.isOnline(driver, at: uptime), lastTripEnded: drivers[driver].lastTripEnded)
    guard drivers.isPresent(driver, at: uptime), let position = drivers[driver].position else { return found }
    found.ownKey = GridPoint(position.coordinate).mortonCode
    if guests.isEmpty || !isGuestNewer(than: driver, drivers) { found.key = found.ownKey }
    return found
  }

  private func areaDriver(guest: Int, _ drivers: borrowing Drivers) -> AreaDriver {
    let (seen, details) = (guests[guest].seen, guests[guest].details)
    var found = AreaDriver(
      number: UInt32(guest) | Guests.bit, id: seen.driverID, rank: guests[guest].hash.areaRank,
      status: seen.status, isOnline: details.isOnline, lastTripEnded: details.lastTripEnded)
    guard guests.isPresent(guest) else { return found }
    if let own = drivers.find(seen.driverID) {
      // A trip that ended at either hub changed its name for riders.
      found.lastTripEnded = max(found.lastTripEnded, drivers[own].lastTripEnded)
      if !isGuestNewer(than: own, drivers) { return found }
    }
    found.key = GridPoint(seen.coordinate).mortonCode
    return found
  }

  /// Whether another hub's state of a driver is newer: it has the session, or a later update.
  private func isGuestNewer(than driver: Int, _ drivers: borrowing Drivers) -> Bool {
    guard let guest = guests.find(drivers[driver].id), guests.isPresent(guest) else { return false }
    guard drivers.isPresent(driver, at: uptime), let position = drivers[driver].position else { return true }
    let isOnline = guests[guest].details.isOnline
    if isOnline == drivers[driver].isStale { return isOnline }
    return guests[guest].seen.timestamp > position.published
  }

  /// The other record of the same driver: this hub's own, or the guest.
  func twin(of driver: AreaDriver, _ drivers: borrowing Drivers) -> UInt32? {
    if guests.isEmpty { return nil }
    if driver.number.guest != nil { return drivers.find(driver.id).map { UInt32($0) } }
    return guests.find(driver.id).map { UInt32($0) | Guests.bit }
  }

  /// What areas keep for a driver.
  @inline(__always)
  func area(of number: UInt32) -> DriverArea {
    if let guest = number.guest { guests[guest].area } else { own[Int(number)] }
  }

  @inline(__always)
  mutating func setArea(_ area: DriverArea, of number: UInt32) {
    if let guest = number.guest { guests[guest].area = area } else { own[Int(number)] = area }
  }

  @inline(__always)
  func rank(of number: UInt32, _ drivers: borrowing Drivers) -> UInt32 {
    if let guest = number.guest { guests[guest].hash.areaRank } else { drivers[Int(number)].areaRank }
  }

  /// The id under which an audience sees the driver.
  @inline(__always)
  func areaName(_ number: UInt32, _ audience: AreaAudience, _ drivers: borrowing Drivers) -> Identifier {
    switch audience {
    case .riders: PublicAudience.name(area(of: number).pseudonym)
    case .ops, .counts, .peers:
      if let guest = number.guest { guests[guest].seen.driverID } else { drivers[Int(number)].id }
    }
  }

  /// A guest as ops see it, or as riders do with the centre of its field; nil for a driver of this hub.
  func shownGuest(_ number: UInt32) -> (seen: AreaUpdate.Driver, details: AreaUpdate.Details)? {
    guard let guest = number.guest else { return nil }
    var details = guests[guest].details
    details.lastTripEnded = 0
    return (guests[guest].seen, details)
  }

  /// The number of all drivers and guests, and the number at an index.
  func numberCount(_ drivers: borrowing Drivers) -> Int { drivers.endIndex + guests.endIndex }

  func number(at index: Int, _ drivers: borrowing Drivers) -> UInt32 {
    index < drivers.endIndex ? UInt32(index) : UInt32(index - drivers.endIndex) | Guests.bit
  }
}

extension UInt64 {
  /// A hash of the driver's id, which decides which drivers of a crowded cell are shown.
  @inline(__always)
  var areaRank: UInt32 { UInt32(truncatingIfNeeded: self &* Mix64.golden >> 32) }
}
