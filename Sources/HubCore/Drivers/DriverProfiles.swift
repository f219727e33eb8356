// Vehicle types and tags of drivers, each combination kept once: a fleet of 100,000 has a few dozen, so a driver costs
// four bytes instead of 600, and a search by profile looks at combinations, not at drivers.
import HubBytes
import HubMessages

/// A vehicle type and tags, as the driver spelled and ordered them.
struct DriverProfile: Equatable {
  var vehicleType: InlineText?
  var tags: [InlineText] = []

  var isEmpty: Bool { vehicleType == nil && tags.isEmpty }

  func hashValue(seed: UInt64) -> UInt64 {
    tags.reduce(vehicleType?.hashValue(seed: seed) ?? ~seed) { $1.hashValue(seed: $0) }
  }
}

/// One combination, and how many drivers have it.
struct DriverProfileRecord {
  var profile: DriverProfile
  var hash: UInt64
  var drivers: Int
}

/// All combinations in use.
struct DriverProfileTable: ~Copyable {
  private let capacity: Int
  private let seed: UInt64
  private var slab = Slab<DriverProfileRecord>()
  private var indices = IndexTable()

  init(capacity: Int, seed: UInt64) {
    self.capacity = capacity
    self.seed = seed
  }

  var count: Int { slab.count }

  /// The profile of an index given by `replace`; an empty one for −1.
  func profile(_ index: Int32) -> DriverProfile { index < 0 ? DriverProfile() : slab[Int(index)].profile }

  func vehicleType(_ index: Int32) -> InlineText? { index < 0 ? nil : slab[Int(index)].profile.vehicleType }

  /// Whether a combination has a vehicle type and all of some tags.
  func matches(_ index: Int32, vehicleType: InlineText?, tags: [InlineText]) -> Bool {
    guard index >= 0 else { return vehicleType == nil && tags.isEmpty }
    if let vehicleType, slab[Int(index)].profile.vehicleType != vehicleType { return false }
    for tag in tags where !slab[Int(index)].profile.tags.contains(tag) { return false }
    return true
  }

  /// Changes a driver's combination from `old` (−1 for none) to `profile`. Nil, without a change, at the limit of
  /// combinations.
  mutating func replace(_ old: Int32, with profile: DriverProfile) -> Int32? {
    if profile.isEmpty {
      release(old)
      return -1
    }
    let hash = profile.hashValue(seed: seed)
    let found = indices.find(hash: hash) { slab[$0].profile == profile }
    if let found {
      slab[found].drivers += 1
      release(old)
      return Int32(found)
    }
    // The old one is freed where no other driver has it.
    let goes = old >= 0 && slab[Int(old)].drivers == 1
    guard slab.count - (goes ? 1 : 0) < capacity else { return nil }
    release(old)
    let made = slab.insert(DriverProfileRecord(profile: profile, hash: hash, drivers: 1))
    indices.insert(hash: hash, index: made)
    return Int32(made)
  }

  mutating func release(_ index: Int32) {
    guard index >= 0 else { return }
    let slot = Int(index)
    slab[slot].drivers -= 1
    guard slab[slot].drivers == 0 else { return }
    indices.remove(hash: slab[slot].hash, index: slot)
    slab.remove(slot, leaving: DriverProfileRecord(profile: DriverProfile(), hash: 0, drivers: 0))
  }
}
