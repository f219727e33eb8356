// All fences, and who is in them.
//
// A stay is a driver in a fence: 48 bytes in a list of the driver's own, so that a fix looks at as many as there are
// and nobody at all drivers of a fence. A fence that is deleted leaves its stays where they are; each goes with its
// driver's next fix, by the generation of the fence.
import HubGeo
import HubMessages

struct FenceRecord {
  var fence: Fence
  var hash: UInt64
  /// In the order in which fences were first put.
  var number: UInt64
  /// By the hub's wall clock.
  var updated: Timestamp
  /// Its cells; none of a roaming fence.
  var covering: FenceCovering
  /// Metres outside of the border where a stay ends, for an exact position.
  var exitMeters = 0.0
  /// What each fix needs, beside the fence: to take it out of there copies, and counts references.
  var isForAll = true
  var circle: Circle?
  var dwell: Double?
  var speedLimit: Double?
  /// Drivers or pairs in it.
  var inside = 0
  /// Says, while a fix is looked at, whether its driver was and is in the fence.
  var stamp: UInt64 = 0
}

/// A driver in a fence.
struct FenceStay {
  var fence: Handle
  /// The time of the fix with which it began.
  var entered: Timestamp
  /// When it was told last that it is speeding there.
  var speedingTold: Timestamp?
  /// It is, as far as was told.
  var isSpeeding = false
  var isDwellTold = false
  /// The driver's next one; −1 for none.
  var next: Int32 = -1
}

/// Where a driver's fences are found: with the driver.
struct DriverFences {
  var known = FenceLevels()
  /// −1 for none.
  var firstStay: Int32 = -1
  var firstPair: Int32 = -1
}

struct FenceTable: ~Copyable {
  var records = Slab<FenceRecord>()
  private var places = IndexTable()
  /// The fences by number, ascending.
  private(set) var order: [UInt32] = []
  private var newestNumber: UInt64 = 0
  var index = FenceIndex()
  /// Roaming fences.
  private(set) var roaming: [UInt32] = []
  /// Positions of all fences.
  private(set) var positions = 0
  var stays = Slab<FenceStay>()
  var pairs = Slab<FencePair>()
  private var stamp: UInt64 = 0
  /// For one fix: the fences that its driver comes into.
  var entering: [UInt32] = []
  /// For one fix: the drivers near it.
  var hits: [DriverHit] = []

  var count: Int { order.count }

  func find(_ id: Identifier, hash: UInt64) -> Int? { places.find(hash: hash) { records[$0].fence.id == id } }

  @inline(__always)
  func isCurrent(_ handle: Handle) -> Bool { records.isCurrent(Int(handle.index), handle.generation) }

  @inline(__always)
  func handle(of fence: Int) -> Handle { Handle(index: UInt32(fence), generation: records.generation(of: fence)) }

  /// Two marks for one look: fences that the driver was in, and of these the ones that it still is in.
  mutating func nextStamp() -> UInt64 {
    stamp += 2
    return stamp
  }

  // MARK: Changing

  /// Puts a fence whose id is not there yet; `number` is that which it had, if it had one.
  mutating func insert(
    _ fence: Fence, _ covering: FenceCovering, hash: UInt64, number: UInt64?, updated: Timestamp, rules: FenceRules
  ) -> Int {
    newestNumber = max(newestNumber + (number == nil ? 1 : 0), number ?? 0)
    let index = records.insert(
      FenceRecord(
        fence: fence, hash: hash, number: number ?? newestNumber, updated: updated, covering: covering))
    places.insert(hash: hash, index: index)
    order.insert(UInt32(index), at: place(of: records[index].number))
    take(fence, covering, index, rules)
    return index
  }

  /// Another fence of the same id and kind of shape.
  mutating func replace(
    _ index: Int, with fence: Fence, _ covering: FenceCovering, updated: Timestamp, rules: FenceRules
  ) {
    release(index)
    records[index].fence = fence
    records[index].covering = covering
    records[index].updated = updated
    take(fence, covering, index, rules)
  }

  private mutating func take(_ fence: Fence, _ covering: FenceCovering, _ index: Int, _ rules: FenceRules) {
    positions += fence.positionCount
    records[index].isForAll = fence.drivers.isEmpty
    records[index].dwell = fence.dwell
    records[index].speedLimit = fence.speedLimit
    records[index].circle = if case .area(.circle(let circle)) = fence.shape { circle } else { nil }
    switch fence.shape {
    case .area(let area):
      records[index].exitMeters = rules.exitMeters(size: area.sizeMeters)
      self.index.insert(covering, fence: index)
    case .roaming(let meters, _):
      records[index].exitMeters = rules.exitMeters(size: meters)
      roaming.append(UInt32(index))
    }
  }

  private mutating func release(_ index: Int) {
    positions -= records[index].fence.positionCount
    switch records[index].fence.shape {
    case .area:
      let covering = records[index].covering
      self.index.remove(covering, fence: index)
    case .roaming: roaming.removeAll { $0 == UInt32(index) }
    }
  }

  mutating func remove(_ index: Int) {
    release(index)
    let (number, hash) = (records[index].number, records[index].hash)
    order.remove(at: place(of: number))
    places.remove(hash: hash, index: index)
    var tombstone = records[index]
    tombstone.fence.shape = .roaming(meters: 1, others: FenceFilter())
    tombstone.covering = FenceCovering(tombstone.fence)
    records.remove(index, leaving: tombstone)
  }

  /// Where a number is, or belongs, in the order.
  private func place(of number: UInt64) -> Int {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if records[Int(order[middle])].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Up to `limit` fences with numbers below `number`, the newest first.
  func page(below number: UInt64, limit: Int) -> ArraySlice<UInt32> { order[..<place(of: number)].suffix(limit) }

  // MARK: Stays

  /// A driver came into a fence; gives the stay.
  mutating func begin(_ fence: Int, at time: Timestamp, of driver: inout DriverFences) -> Int {
    let stay = stays.insert(FenceStay(fence: handle(of: fence), entered: time, next: driver.firstStay))
    driver.firstStay = Int32(stay)
    records[fence].inside += 1
    return stay
  }

  /// Ends a stay, the one behind `previous` (−1: the driver's first).
  mutating func end(_ stay: Int, behind previous: Int, of driver: inout DriverFences) {
    let (fence, next) = (stays[stay].fence, stays[stay].next)
    if previous < 0 { driver.firstStay = next } else { stays[previous].next = next }
    if isCurrent(fence) { records[Int(fence.index)].inside -= 1 }
    let gone = FenceStay(fence: fence, entered: stays[stay].entered)
    stays.remove(stay, leaving: gone)
  }

  /// The driver's stay in a fence, and the one before it.
  func find(_ fence: Int, of driver: DriverFences) -> (stay: Int, previous: Int)? {
    var (stay, previous) = (Int(driver.firstStay), -1)
    while stay >= 0 {
      if stays[stay].fence == handle(of: fence) { return (stay, previous) }
      (previous, stay) = (stay, Int(stays[stay].next))
    }
    return nil
  }

  /// How many fences the driver is in.
  func stayCount(of driver: DriverFences) -> Int {
    var (stay, count) = (Int(driver.firstStay), 0)
    while stay >= 0 {
      count += 1
      stay = Int(stays[stay].next)
    }
    return count
  }
}
