// Drivers of other hubs in the cells that are watched here: they are in the same cells as this hub's own, by numbers of
// their own, so that whoever watches sees one fleet.
//
//     another hub's tick → guests take what it tells → noted → this hub's next tick looks at them as at its own
//
// This hub tells others of its own drivers by cells that are watched for them (`AreaAudience.peers`), and has no guests
// in these.
import HubBytes
import HubGeo
import HubMessages

extension UInt32 {
  /// The guest's place in its table; nil for the number of a driver of this hub.
  fileprivate var guest: Int? { self & Guests.bit != 0 ? Int(self & ~Guests.bit) : nil }
}

/// A driver as a tick looks at it: one of this hub's, or a guest.
struct AreaDriver {
  let number: UInt32
  let id: Identifier
  /// Which of a crowd are shown: the same ones from tick to tick.
  let rank: UInt32
  let status: DriverStatus
  let isOnline: Bool
  var lastTripEnded: Int64
  /// Morton keys of its place: for who watches here, and for other hubs; nil where it is not shown to them.
  var key: UInt64?
  var ownKey: UInt64?

  var isAvailable: Bool { key != nil && isOnline && status == .available }

  func key(for audience: AreaAudience) -> UInt64? { audience == .peers ? ownKey : key }
}

extension AreaTable {
  // MARK: What other hubs say

  /// False where the table of guests is full.
  mutating func take(_ input: ClusterInput, _ drivers: inout Drivers) -> Bool {
    defer { boundSweeps(&drivers) }
    if case .area(let update, let peer, let endsWhole) = input {
      return take(update, from: peer, endsWhole: endsWhole, &drivers)
    }
    // Where that hub's drivers are is not known any more.
    if case .areasLost(let peer) = input, !guests.isEmpty { guests.endAll(of: peer) }
    return true
  }

  private mutating func take(
    _ update: AreaUpdate, from peer: UInt32, endsWhole: Bool, _ drivers: inout Drivers
  ) -> Bool {
    if update.isFull { guests.begin(update.cell, of: peer) }
    var isTaken = true
    for (seen, details) in zip(update.drivers, update.details) where !take(seen, details, from: peer, &drivers) {
      isTaken = false
    }
    for id in update.left {
      guard let guest = guests.find(id), guests[guest].peer == peer else { continue }
      // Where it is elsewhere by now it is in another cell of that hub.
      if update.cell.contains(key: GridPoint(guests[guest].seen.coordinate).mortonCode) { drop(guest, &drivers) }
    }
    if endsWhole { guests.end(update.cell, of: peer) }
    return isTaken
  }

  private mutating func take(
    _ seen: AreaUpdate.Driver, _ details: AreaUpdate.Details, from peer: UInt32, _ drivers: inout Drivers
  ) -> Bool {
    let isWatched = interest.covers(GridPoint(seen.coordinate).mortonCode)
    guard let known = guests.find(seen.driverID) else {
      guard isWatched else { return true }
      guard let new = guests.insert(seen, details, of: peer) else { return false }
      note(guest: new, &drivers)
      return true
    }
    guard guests.take(seen, details, of: known, from: peer) else { return true }
    if isWatched { note(guest: known, &drivers) } else { drop(known, &drivers) }
    return true
  }

  /// Past their limit the oldest sweep is done at once.
  private mutating func boundSweeps(_ drivers: inout Drivers) {
    while guests.sweeps.count > HubLimits.guestSweeps {
      var budget = guests.count + 1
      for guest in guests.nextSwept(interest, &budget) ?? [] { drop(Int(guest), &drivers) }
    }
  }

  private mutating func drop(_ guest: Int, _ drivers: inout Drivers) {
    guard !guests[guest].isGone else { return }
    guests.end(guest)
    note(guest: guest, &drivers)
  }

  /// The next tick looks at it, and at this hub's own driver of that id.
  private mutating func note(guest: Int, _ drivers: inout Drivers) {
    if let own = drivers.find(guests[guest].seen.driverID) { note(own, &drivers[areaOf: own]) }
    guard !guests[guest].area.isNoted else { return }
    if isActive {
      guests[guest].area.isNoted = true
      noted.append(UInt32(guest) | Guests.bit)
    } else if guests[guest].isGone {
      guests.remove(guest)  // there is no cell that it could be in
    }
  }

  /// Lets guests go that nobody tells of any more, or nobody watches.
  mutating func sweepGuests(_ drivers: inout Drivers, _ budget: inout Int) {
    while budget > 0, let swept = guests.nextSwept(interest, &budget) {
      for guest in swept { drop(Int(guest), &drivers) }
    }
  }

  /// A guest that is gone has been taken out of its cells. It may be looked at twice in a tick, when names change: the
  /// second time it is not there any more.
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

  /// Whether another hub knows a driver of this hub better: it has its session, or has heard of it later.
  private func isGuestNewer(than driver: Int, _ drivers: borrowing Drivers) -> Bool {
    guard let guest = guests.find(drivers[driver].id), guests.isPresent(guest) else { return false }
    guard drivers.isPresent(driver, at: uptime), let position = drivers[driver].position else { return true }
    let isOnline = guests[guest].details.isOnline
    if isOnline == drivers[driver].isStale { return isOnline }
    return guests[guest].seen.timestamp > position.published
  }

  /// The other one of two that are the same driver: this hub's own, or the guest.
  func twin(of driver: AreaDriver, _ drivers: borrowing Drivers) -> UInt32? {
    if guests.isEmpty { return nil }
    if driver.number.guest != nil { return drivers.find(driver.id).map { UInt32($0) } }
    return guests.find(driver.id).map { UInt32($0) | Guests.bit }
  }

  /// What areas keep of a driver.
  @inline(__always)
  func area(of number: UInt32, _ drivers: borrowing Drivers) -> DriverArea {
    if let guest = number.guest { guests[guest].area } else { drivers[areaOf: Int(number)] }
  }

  @inline(__always)
  mutating func setArea(_ area: DriverArea, of number: UInt32, _ drivers: inout Drivers) {
    if let guest = number.guest { guests[guest].area = area } else { drivers[areaOf: Int(number)] = area }
  }

  @inline(__always)
  func rank(of number: UInt32, _ drivers: borrowing Drivers) -> UInt32 {
    if let guest = number.guest { guests[guest].hash.areaRank } else { drivers[Int(number)].areaRank }
  }

  /// The name that an audience knows a driver by.
  @inline(__always)
  func areaName(_ number: UInt32, _ audience: AreaAudience, _ drivers: borrowing Drivers) -> Identifier {
    switch audience {
    case .everybody: PublicAudience.name(area(of: number, drivers).pseudonym)
    case .ops, .counts, .peers:
      if let guest = number.guest { guests[guest].seen.driverID } else { drivers[Int(number)].id }
    }
  }

  /// What ops, or riders by the place of its field, see of a guest; nil for a driver of this hub.
  func shownGuest(_ number: UInt32) -> (seen: AreaUpdate.Driver, details: AreaUpdate.Details)? {
    guard let guest = number.guest else { return nil }
    var details = guests[guest].details
    details.lastTripEnded = 0
    return (guests[guest].seen, details)
  }

  /// How many numbers there are in all, of drivers and of guests, and which is at a place among them.
  func numberCount(_ drivers: borrowing Drivers) -> Int { drivers.endIndex + guests.endIndex }

  func number(at place: Int, _ drivers: borrowing Drivers) -> UInt32 {
    place < drivers.endIndex ? UInt32(place) : UInt32(place - drivers.endIndex) | Guests.bit
  }
}

extension UInt64 {
  /// Of a driver's hash: which of a crowd are shown, the same ones from tick to tick.
  @inline(__always)
  fileprivate var areaRank: UInt32 { UInt32(truncatingIfNeeded: self &* Mix64.golden >> 32) }
}

extension Driver {
  @inline(__always)
  var areaRank: UInt32 { hash.areaRank }
}
