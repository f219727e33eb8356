// The hub's durable state: each change of a trip and each event writes a record, and outputs that show it wait until
// the record is on stable storage. Without a journal nothing is written and nothing waits.
//
//     handle(input) → change, record, held output          the hub's thread
//     takeRecords → one write and one fdatasync a group     the journal's thread
//     stored(through:) → held outputs leave, in order       the hub's thread
public import HubBytes
public import HubMessages

extension Hub {
  // MARK: For the hub's caller

  /// Begins to store changes. While `limit` bytes of records wait to be taken, further changes are refused.
  /// `startsEpoch`: begin new sequence numbers, since something that was acknowledged is lost. `looksUp`: the caller
  /// answers the questions of `takeLookups`.
  public mutating func attachJournal(limit: Int, startsEpoch: Bool, epoch: InlineText, looksUp: Bool = false) {
    storage = HubStorage(limit: limit, callerAnswersLookups: looksUp)
    if hasEpochRecord, !startsEpoch { return }
    channels.begin(epoch: epoch)
    hasEpochRecord = true
    storage.write(.epoch(epoch, seed: seed, pseudonymKey: pseudonymKey))
  }

  /// Gives `body` the records since the last call, with their number for `stored`; it returns whether it took them.
  public mutating func takeRecords(_ body: (UnsafeRawBufferPointer, _ ticket: UInt64) -> Bool) {
    unsafe storage.handOver(body)
  }

  /// Appends questions for the journal about stored records. Each is answered once, by `HubInput.knownFixes`.
  public mutating func takeLookups(into lookups: inout [HistoryLookup]) {
    self.lookups.take(storedThrough: storage.storedThrough, into: &lookups)
  }

  /// Records up to `ticket` are on stable storage: releases what waited for them.
  public mutating func stored(through ticket: UInt64, condition: StorageCondition) {
    storage.stored(through: ticket, condition)
    let parked = channels.release(from: &storage)
    storage.setReleasing(true)
    for input in parked { dispatch(input) }
    storage.setReleasing(false)
    if condition == .unavailable {
      for held in storage.takeAnswers() {
        switch held {
        case .output(let output, let outlet): channels.refuse(waiting: output, to: outlet, counting: &counters)
        case .input(let input): dispatch(input)  // refused there, or answered where it only waited behind others
        }
      }
      for batch in lookups.takeUnstored(storedThrough: storage.storedThrough) {
        refuseUnstored(batch.input, fixes: batch.indices.count)
      }
    }
    counters.heldForStorage = storage.held.count
  }

  // MARK: Reading back

  /// Applies the records in `bytes` to a hub that has not handled anything yet. They must come in the order in which
  /// they were taken, those of a snapshot first.
  public mutating func load(_ bytes: UnsafeRawBufferPointer) throws(RecordError) {
    var reader = unsafe RecordReader(bytes)
    while !reader.isAtEnd {
      let isInOrder = try reader.record { (kind, reader) throws(RecordError) in
        // Nearly all are fixes: for each, a `DurableRecord`, as large as its largest case, would be copied four times.
        if kind == RecordKind.fixes.rawValue { return load(DurableFixes(try FixesRecord(from: &reader))) }
        return load(try DurableRecord(kind, from: &reader))
      }
      guard isInOrder else { throw RecordError(fault: .order, offset: reader.position) }
    }
  }

  /// Applies a record; false where it contradicts earlier ones. A driver for which the table has no room is left out,
  /// and begins without stored state when it connects.
  private mutating func load(_ record: DurableRecord) -> Bool {
    switch record {
    case .epoch(let epoch, let seed, let pseudonymKey):
      guard !hasEpochRecord || seed == self.seed else { return false }
      if !hasEpochRecord { takeOver(seed: seed, pseudonymKey: pseudonymKey) }
      channels.begin(epoch: epoch)
      hasEpochRecord = true
    case .trip, .eta, .highestTripNumber: return hasEpochRecord && trips.load(record, at: now.uptime)
    case .tripForgotten(let id):
      guard let trip = trips.find(id) else { return false }
      removeTrip(trip)
    case .event, .channel, .channelForgotten, .highestSequence: return channels.load(record) && hasEpochRecord
    case .fixes(let fixes): return load(fixes)
    case .driver(let stored):
      guard let driver = findOrInsertDriver(stored.id) else { break }
      let trip = stored.tripID.flatMap { trips.find($0) }.map { trips.handle(of: $0) }
      if !drivers.load(stored, driver: driver, trip: trip) { counters.count(full: .profiles) }
    case .driverOffline(let id, let time):
      if let driver = findOrInsertDriver(id) { drivers.goOffline(driver, at: time, isStored: true) }
    case .driverForgotten(let id): if let driver = drivers.find(id) { removeDriver(driver) }
    case .fence(let fence): return hasEpochRecord && fences.load(fence)
    case .fenceDeleted(let id): return fences.remove(id) != nil
    case .stay(let stay):
      guard fences.find(stay.fenceID) != nil else { return false }
      if let driver = findOrInsertDriver(stay.driverID) { fences.load(stay, driver: driver) }
    case .stayEnded(let driver, let fence):
      if let driver = drivers.find(driver) { fences.loadEnded(driver: driver, fence: fence) }
    case .pair(let pair):
      guard fences.find(pair.fenceID) != nil, pair.driverID != pair.otherID else { return false }
      if let driver = findOrInsertDriver(pair.driverID), let other = findOrInsertDriver(pair.otherID) {
        fences.load(pair, driver, other)
      }
    case .pairEnded(let fence, let driver, let other):
      guard let driver = drivers.find(driver), let other = drivers.find(other) else { break }
      fences.loadEndedPair(driver, other, fence: fence)
    case .tokenFamily, .tokensRotated, .tokensSettled, .tokenFamilyEnded, .revocation, .unrevoked, .audit:
      credentials.load(record)
    case .offers(let search): return hasEpochRecord && offers.load(search, trips)
    case .offersForgotten(let id): offers.forget(id, trips)
    }
    return hasEpochRecord
  }

  private mutating func load(_ fixes: DurableFixes) -> Bool {
    let trip = fixes.tripID.flatMap { trips.find($0) }
    guard hasEpochRecord, trip != nil || fixes.tripID == nil else { return false }
    if let trip, let progress = fixes.progress { trips.load(progress, of: trip) }
    if let driver = findOrInsertDriver(fixes.driverID) {
      drivers.load(fixes, driver: driver, trip: trip.map { trips.handle(of: $0) })
    }
    return true
  }

  /// Ends loading, at `start`: rebuilds what is not stored (deadlines, links between tables, indexes). Presence counts
  /// from `start`, since nothing could reach this hub before.
  public mutating func finishLoading(at start: Moment) {
    now = start
    drivers.noteStall(at: start.uptime)
    channels.finishRestoring()
    for trip in 0..<trips.endIndex where trips.isInUse(trip) { resumeTrip(trip) }
    for name in channels.keptNames() {
      guard case .driver(let id) = name, let driver = findOrInsertDriver(id) else { continue }
      drivers.link(driver, to: channels.find(name))
    }
    for driver in 0..<drivers.endIndex where drivers.isInUse(driver) { drivers.resume(driver, at: now, &deadlines) }
    credentials.finishLoading(at: now, &deadlines)
    offers.resume(drivers, at: now, &deadlines)
  }

  /// Writes the durable state as records, in parts of about `partBytes`. `mutating`, though it changes nothing: to
  /// check the uses of a borrowed hub takes Swift 6.3's compiler 30 s, a fifth of what the target takes in all.
  public mutating func writeSnapshot<E: Error>(
    partBytes: Int = 1 << 20, _ body: (UnsafeRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    var parts = RecordParts(bytes: partBytes)
    func add(_ record: DurableRecord) throws(E) { unsafe try parts.add(record, body) }
    try add(.epoch(channels.epoch, seed: seed, pseudonymKey: pseudonymKey))
    try add(.highestSequence(channels.highestSequence))
    try trips.forEachRecord(of: drivers) { (record) throws(E) in try add(record) }
    try fences.forEachRecord(of: drivers) { (record) throws(E) in try add(record) }
    try credentials.forEachRecord { (record) throws(E) in try add(record) }
    try offers.forEachRecord { (record) throws(E) in try add(record) }
    try channels.forEachRecord { (record) throws(E) in try add(record) }
    unsafe try parts.finish(body)
  }
}
