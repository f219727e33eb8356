// All fences: by id, in the order in which they were first put, and by cell.
import HubGeo
import HubMessages

struct FenceRecord {
  var fence: Fence
  var hash: UInt64
  /// Its number in the order in which fences were first put.
  var number: UInt64
  /// By the hub's wall clock.
  var updated: Timestamp
  /// Its cells; none of a roaming fence.
  var covering: FenceCovering
  /// Metres beyond the border where a stay ends, for an exact position.
  var exitMeters = 0.0
  /// What each fix needs, copied out of the fence to avoid counting references.
  var isForAll = true
  var circle: Circle?
  var dwell: Double?
  var speedLimit: Double?
  /// Drivers or pairs in it.
  var inside = 0
  /// Marks, during a check, whether the driver was and is in the fence.
  var stamp: UInt64 = 0

  var report: FenceReport { FenceReport(fence: fence, updated: updated, inside: inside) }
  var durable: DurableFence { DurableFence(number: number, updated: updated, fence: fence) }

  @inline(__always)
  func contains(_ place: Coordinate, _ direction: UnitVector) -> Bool {
    if let circle { return circle.contains(place, direction) }
    return fence.area?.contains(place, direction) ?? false
  }
}

struct FenceTable: ~Copyable {
  private let rules: FenceRules
  private var records = Slab<FenceRecord>()
  private var ids = IndexTable()
  /// The fences by number, ascending.
  private(set) var order: [UInt32] = []
  private var newestNumber: UInt64 = 0
  private(set) var index = FenceIndex()
  private(set) var roaming: [UInt32] = []
  /// Positions of all fences.
  private(set) var positions = 0

  init(rules: FenceRules) { self.rules = rules }

  var count: Int { order.count }

  subscript(index: Int) -> FenceRecord {
    @inline(__always) unsafeAddress { unsafe records.address(of: index) }
  }

  func find(_ id: Identifier, hash: UInt64) -> Int? { ids.find(hash: hash) { records[$0].fence.id == id } }

  @inline(__always)
  func isCurrent(_ handle: Handle) -> Bool { records.current(handle) != nil }

  @inline(__always)
  func handle(of fence: Int) -> Handle { records.handle(of: fence) }

  /// The id of a handle's fence; nil where that was deleted.
  func id(_ handle: Handle) -> Identifier? { records.current(handle).map { records[$0].fence.id } }

  // MARK: Drivers inside

  /// Counts a driver or a pair in (1) or out (−1); does nothing where the fence was deleted.
  mutating func count(_ step: Int, in fence: Handle) {
    if isCurrent(fence) { records[Int(fence.index)].inside += step }
  }

  @inline(__always)
  mutating func mark(_ fence: Int, _ stamp: UInt64) { records[fence].stamp = stamp }

  // MARK: Changing

  /// Adds a fence with a new id; `number` is its earlier one, if it had one.
  mutating func insert(
    _ fence: Fence, _ covering: FenceCovering, hash: UInt64, number: UInt64?, updated: Timestamp
  ) -> Int {
    newestNumber = max(newestNumber + (number == nil ? 1 : 0), number ?? 0)
    let index = records.insert(
      FenceRecord(
        fence: fence, hash: hash, number: number ?? newestNumber, updated: updated, covering: covering))
    ids.insert(hash: hash, index: index)
    order.insert(UInt32(index), at: rank(of: records[index].number))
    take(fence, covering, index)
    return index
  }

  /// Replaces a fence by another of the same id, keeping its number.
  mutating func replace(_ index: Int, with fence: Fence, _ covering: FenceCovering, updated: Timestamp) {
    release(index)
    records[index].fence = fence
    records[index].covering = covering
    records[index].updated = updated
    take(fence, covering, index)
  }

  private mutating func take(_ fence: Fence, _ covering: FenceCovering, _ index: Int) {
    positions += fence.positionCount
    records[index].isForAll = fence.drivers.isEmpty
    records[index].dwell = fence.dwell
    records[index].speedLimit = fence.speedLimit
    records[index].circle = if case .circle(let circle) = fence.area { circle } else { nil }
    switch fence.shape {
    case .area(let area), .hazard(let area):
      records[index].exitMeters = rules.exitMeters(size: area.sizeMeters)
      self.index.insert(covering, fence: index)
    case .roaming(let meters, _):
      records[index].exitMeters = rules.exitMeters(size: meters)
      roaming.append(UInt32(index))
    }
  }

  private mutating func release(_ index: Int) {
    positions -= records[index].fence.positionCount
    if records[index].fence.isRoaming {
      roaming.removeAll { $0 == UInt32(index) }
    } else {
      let covering = records[index].covering
      self.index.remove(covering, fence: index)
    }
  }

  mutating func remove(_ index: Int) {
    release(index)
    let (number, hash) = (records[index].number, records[index].hash)
    order.remove(at: rank(of: number))
    ids.remove(hash: hash, index: index)
    var tombstone = records[index]
    tombstone.fence.shape = .roaming(meters: 1, others: FenceFilter())
    tombstone.covering = FenceCovering(tombstone.fence)
    records.remove(index, leaving: tombstone)
  }

  /// The index of a number in the order, or where it belongs.
  private func rank(of number: UInt64) -> Int {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if records[Int(order[middle])].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Up to `limit` fences with numbers below `number`, newest first.
  func page(below number: UInt64, limit: Int) -> ArraySlice<UInt32> { order[..<rank(of: number)].suffix(limit) }
}
