// Drivers of other hubs of the cluster in cells that are watched here: only what areas show of a driver.
//
// Each hub publishes its own drivers, with all that is shown, whenever something changes. Two hubs may publish a driver
// for a moment after it changed between them: then the newer state counts, and the older hub's departure is ignored.
import HubBytes
import HubGeo
import HubMessages

struct Guest {
  /// As ops see it, with the driver's own id.
  var seen: AreaUpdate.Driver
  var details: AreaUpdate.Details
  let hash: UInt64
  /// The hub that updated it last, and when, by the table's clock.
  var peer: UInt32
  var stamp: UInt32
  /// The next tick removes it.
  var isGone = false
  var area = DriverArea()
}

struct Guests: ~Copyable {
  /// Set in the numbers of guests in areas, which so differ from those of this hub's drivers.
  static var bit: UInt32 { 1 << 31 }

  private let seed: UInt64
  private let limit: Int
  private var slab = Slab<Guest>()
  private var ids = IndexTable()
  /// The positions of guests, without those that are gone.
  private(set) var index: DriverIndex
  /// A logical clock: it advances when a snapshot begins, and when a hub is lost.
  private var clock: UInt32 = 0
  /// The clock at the beginning of each hub's unfinished snapshots, by cell.
  private var begun: [Whole: UInt32] = [:]
  /// Parts of the map in which guests to be removed are searched.
  private(set) var sweeps: [GuestSweep] = []

  private struct Whole: Hashable {
    var peer: UInt32
    var cell: GeohashCell
  }

  init(limit: Int, seed: UInt64) {
    self.limit = limit
    self.seed = seed
    index = DriverIndex(capacity: limit)
  }

  var count: Int { slab.count }
  var isEmpty: Bool { slab.count == 0 }
  var endIndex: Int { slab.endIndex }

  subscript(guest: Int) -> Guest {
    @inline(__always) unsafeAddress { unsafe slab.address(of: guest) }
    @inline(__always) _modify { yield &slab[guest] }
  }

  func find(_ id: Identifier) -> Int? {
    isEmpty ? nil : ids.find(hash: id.text.hashValue(seed: seed)) { slab[$0].seen.driverID == id }
  }

  /// Whether a number belongs to a present guest.
  func isPresent(_ guest: Int) -> Bool { slab.isInUse(guest) && !slab[guest].isGone }

  /// Finds guests as `DriverIndex.drivers(from:through:limit:into:)` does, by their numbers in areas.
  func numbers(from first: UInt64, through last: UInt64, limit: Int, into found: inout [UInt32]) -> UInt64? {
    let start = found.count
    let next = index.drivers(from: first, through: last, limit: limit, into: &found)
    for index in start..<found.count { found[index] |= Guests.bit }
    return next
  }

  /// Whether the next tick removes a guest.
  func isGone(_ guest: Int) -> Bool { slab.isInUse(guest) && slab[guest].isGone }

  // MARK: What hubs say

  /// Inserts a guest; nil at the limit.
  mutating func insert(_ seen: AreaUpdate.Driver, _ details: AreaUpdate.Details, of peer: UInt32) -> Int? {
    guard count < limit else { return nil }
    let hash = seen.driverID.text.hashValue(seed: seed)
    let guest = slab.insert(Guest(seen: seen, details: details, hash: hash, peer: peer, stamp: clock))
    ids.insert(hash: hash, index: guest)
    index.move(UInt32(guest), to: seen.coordinate)
    return guest
  }

  /// Takes another hub's update of a guest; false where a newer state is known.
  mutating func take(
    _ seen: AreaUpdate.Driver, _ details: AreaUpdate.Details, of guest: Int, from peer: UInt32
  ) -> Bool {
    let known = slab[guest]
    if known.peer != peer, !known.isGone {
      guard details.isOnline || !known.details.isOnline else { return false }
      if details.isOnline == known.details.isOnline, seen.timestamp < known.seen.timestamp { return false }
    }
    slab[guest].seen = seen
    slab[guest].details = details
    // The hub of its new session knows no trip that ended elsewhere.
    slab[guest].details.lastTripEnded = max(details.lastTripEnded, known.details.lastTripEnded)
    slab[guest].peer = peer
    slab[guest].stamp = clock
    slab[guest].isGone = false
    index.move(UInt32(guest), to: seen.coordinate)
    return true
  }

  /// Hides a guest; its record stays until a tick has removed it from its cells.
  mutating func end(_ guest: Int) {
    slab[guest].isGone = true
    index.remove(UInt32(guest))
  }

  mutating func remove(_ guest: Int) {
    var tombstone = slab[guest]
    tombstone.isGone = true
    ids.remove(hash: tombstone.hash, index: guest)
    slab.remove(guest, leaving: tombstone)
  }

  // MARK: What is to go

  /// A hub begins a snapshot of a cell.
  mutating func begin(_ cell: GeohashCell, of peer: UInt32) {
    clock &+= 1
    begun[Whole(peer: peer, cell: cell)] = clock
  }

  /// The snapshot is complete: guests that were not in it are gone.
  mutating func end(_ cell: GeohashCell, of peer: UInt32) {
    guard let start = begun.removeValue(forKey: Whole(peer: peer, cell: cell)) else { return }
    sweeps.append(GuestSweep(cell.firstKey...cell.lastKey, .unconfirmed(by: peer, since: start)))
  }

  /// Forgets the drivers of a hub.
  mutating func endAll(of peer: UInt32) {
    begun = begun.filter { $0.key.peer != peer }
    clock &+= 1
    sweeps.append(GuestSweep(0...(1 << 60 - 1), .unconfirmed(by: peer, since: clock)))
  }

  /// Begins to remove the guests of a cell that nobody here watches any more.
  mutating func sweep(_ cell: GeohashCell) {
    if !begun.isEmpty { begun = begun.filter { $0.key.cell != cell } }
    if !isEmpty { sweeps.append(GuestSweep(cell.firstKey...cell.lastKey, .unwatched)) }
  }

  /// The next guests that a sweep removes; nil where no sweep is left. Subtracts its cost from the budget.
  mutating func nextSwept(_ interest: borrowing AreaInterest, _ budget: inout Int) -> [UInt32]? {
    guard let sweep = sweeps.first else { return nil }
    var found: [UInt32] = []
    let next = index.drivers(from: sweep.key, through: sweep.last, limit: budget, into: &found)
    budget -= 4 + found.count / 4
    if let next { sweeps[0].key = next } else { sweeps.removeFirst() }
    switch sweep.reason {
    case .unconfirmed(let peer, let start):
      found.removeAll { self[Int($0)].peer != peer || Int32(bitPattern: self[Int($0)].stamp &- start) >= 0 }
    case .unwatched: found.removeAll { interest.covers(GridPoint(self[Int($0)].seen.coordinate).mortonCode) }
    }
    return found
  }
}

/// A part of the map in which guests to be removed are searched.
struct GuestSweep {
  enum Reason {
    /// A hub's snapshot is complete, and has not had them since the table's clock was `since`.
    case unconfirmed(by: UInt32, since: UInt32)
    case unwatched
  }

  var key: UInt64
  let last: UInt64
  let reason: Reason

  init(_ keys: ClosedRange<UInt64>, _ reason: Reason) {
    (key, last) = (keys.lowerBound, keys.upperBound)
    self.reason = reason
  }
}

/// The cells that other hubs are asked for: the watched ones, small ones rounded up, so that a map that moves a little
/// asks for nothing new.
struct AreaInterest {
  private static var finest: Int { ClusterOutput.finestWatched }

  private var counts: [GeohashCell: Int] = [:]
  /// The number of cells of each precision.
  private var lengths = [Int](repeating: 0, count: finest + 1)

  /// Adds a watched cell. Gives the cell to ask for, where it is new.
  mutating func add(_ cell: GeohashCell) -> GeohashCell? {
    let asked = cell.ancestor(precision: min(cell.precision, AreaInterest.finest))
    counts[asked, default: 0] += 1
    guard counts[asked] == 1 else { return nil }
    lengths[asked.precision] += 1
    return asked
  }

  /// Removes a watched cell. Gives the cell that is no longer asked for.
  mutating func remove(_ cell: GeohashCell) -> GeohashCell? {
    let asked = cell.ancestor(precision: min(cell.precision, AreaInterest.finest))
    guard let count = counts[asked] else { return nil }
    counts[asked] = count > 1 ? count - 1 : nil
    guard count == 1 else { return nil }
    lengths[asked.precision] -= 1
    return asked
  }

  /// Whether the coordinate of a Morton key is asked for.
  func covers(_ key: UInt64) -> Bool {
    for precision in 1...AreaInterest.finest where lengths[precision] > 0 {
      if let cell = GeohashCell(bits: key >> UInt64(60 - 5 * precision), precision: precision), counts[cell] != nil {
        return true
      }
    }
    return false
  }
}
