// The active trips of each driver: a list through two tables of numbers, since nearly every driver has one at most.

struct ActiveTrips: ~Copyable {
  private static var none: Int32 { -1 }

  /// By driver the first of its active trips, and by trip the next one.
  private var first: PagedSlab<Int32>
  private var next: PagedSlab<Int32>

  /// For up to `drivers` drivers; allocates only the lists of pages. The number of trips has no limit here, since a
  /// journal may have more than may begin now.
  init(drivers: Int) {
    first = PagedSlab(limit: drivers, pageShift: 10, filler: ActiveTrips.none)
    next = PagedSlab(limit: Int(Int32.max), pageShift: 14, filler: ActiveTrips.none)
  }

  /// The driver's active trip; nil where it has none, or several.
  func only(of driver: Int) -> Int? {
    guard driver < first.count, first[driver] >= 0 else { return nil }
    let trip = Int(first[driver])
    return next[trip] < 0 ? trip : nil
  }

  /// Adds a trip to its driver's. Precondition: it is in no driver's list.
  mutating func insert(_ trip: Int, of driver: Int) {
    if driver >= first.count { first.grow(to: driver + 1) }
    if trip >= next.count { next.grow(to: trip + 1) }
    next[trip] = first[driver]
    first[driver] = Int32(trip)
  }

  /// Removes a trip from its driver's, which must have it. O(the driver's active trips).
  mutating func remove(_ trip: Int, of driver: Int) {
    let after = next[trip]
    next[trip] = ActiveTrips.none
    if first[driver] == trip {
      first[driver] = after
    } else {
      var before = Int(first[driver])
      while next[before] != trip { before = Int(next[before]) }
      next[before] = after
    }
  }
}
