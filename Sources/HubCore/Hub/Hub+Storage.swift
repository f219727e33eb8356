// What is durable of the hub, and how: each change of a trip and each event writes a record, and whatever tells of it
// waits until the record is on stable storage. Without a journal nothing is written and nothing waits.
//
//     handle(input) → change, record, held output          the hub's thread
//     takeRecords → one write and one fdatasync a group     the journal's thread
//     stored(through:) → held outputs leave, in order       the hub's thread
//
// Positions wait for nothing. Who asks for a channel whose newest event is not stored yet is answered when it is, so
// that nobody is shown what a crash could undo.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  // MARK: For whoever drives the hub

  /// From now on changes are stored. At `limit` bytes of records that were not taken, further changes are refused.
  /// `startsEpoch` begins a new life of the numbers: something that was promised is gone.
  /// `looksUp` promises that what `takeLookups` gives is answered.
  public mutating func attachJournal(limit: Int, startsEpoch: Bool, epoch new: InlineText, looksUp: Bool = false) {
    storage = HubStorage(limit: limit, looksUp: looksUp)
    if hasLife, !startsEpoch { return }
    epoch = new
    hasLife = true
    storage.write(.life(epoch: epoch, seed: seed, pseudonymKey: pseudonymKey))
  }

  /// Gives the records since the last time to `body` with their number, for `stored`; it says whether it has taken
  /// them.
  public mutating func takeRecords(_ body: (UnsafeRawBufferPointer, _ ticket: UInt64) -> Bool) {
    storage.handOver(body)
  }

  /// Appends what the journal is to be asked, for which everything before is stored. Each is answered once, by
  /// `HubInput.knownFixes`.
  public mutating func takeLookups(into lookups: inout [HistoryLookup]) {
    if !self.lookups.isEmpty { self.lookups.take(storedThrough: storage.storedThrough, into: &lookups) }
  }

  /// All records up to `ticket` are on stable storage: what waited for them leaves.
  public mutating func stored(through ticket: UInt64, condition: StorageCondition) {
    storage.condition = condition
    storage.stored(through: ticket)
    // Events first: who asked between two of them is shown both as missed, and must not get the second live as well.
    var parked: [HubInput] = []
    while storage.hasReleasable, let next = storage.release() {
      switch next {
      case .output(let output, let loop): emit(output, to: loop)
      case .input(let input): parked.append(input)
      }
    }
    storage.isReleasing = true
    for input in parked { dispatch(input) }
    storage.isReleasing = false
    switch condition {
    case .good: break
    case .unavailable: refuseWhatWaits()
    }
    counters.heldForStorage = storage.held.count
  }

  // MARK: Waiting

  /// An output that leaves when everything done so far is stored. Where that cannot be now, an answer is refused.
  mutating func emitStored(_ output: HubOutput, to loop: UInt32) {
    guard storage.newest > storage.storedThrough else { return emit(output, to: loop) }
    switch storage.condition {
    case .good: storage.hold(output, for: loop)
    case .unavailable where output.isAnswer: refuse(waiting: output, to: loop)
    case .unavailable: storage.hold(output, for: loop)
    }
  }

  mutating func replyStored(_ reply: Reply, to session: SessionRef) {
    emitStored(.reply(session, reply), to: session.loop)
  }

  /// Puts an input about a channel off until the channel's events are stored; false where they are, and nothing waits
  /// that came before it.
  mutating func waits(_ input: HubInput, for channel: Channel) -> Bool {
    guard storage.isOn, storage.condition == .good else { return false }
    // Not before those that came earlier; they are being handled again, in order, while they are released.
    let isBehindOthers = storage.parked > 0 && !storage.isReleasing && channels.find(channel) != nil
    guard isBehindOthers || isUnstored(channel) else { return false }
    storage.park(input)
    return true
  }

  /// Whether a channel's newest event is not stored yet. A new channel counts on from the numbers of those that are
  /// gone: that they are must be stored, or a hub that comes back gives these numbers to other events.
  mutating func isUnstored(_ channel: Channel) -> Bool {
    guard let index = channels.find(channel) else { return storage.forgottenTicket > storage.storedThrough }
    return channels.eventTicket(index) > storage.storedThrough
  }

  // MARK: Changes

  mutating func recordTrip(_ trip: Int) {
    trips[trip].noteUpdate(at: now.timestamp)
    guard storage.isOn else { return }
    storage.write(.trip(trips[trip].durable))
  }

  /// The channel's events are no longer kept.
  mutating func forgetEvents(of channel: Int) {
    if storage.isOn, channels.isKept(channel) {
      storage.write(.channelForgotten(channels.name(channel)))
      storage.forgottenTicket = storage.ticket
    }
    _ = channels.setKept(channel, false)
  }

  // MARK: Reading back

  /// Makes the changes that `bytes` tell of, in a hub that has not handled anything yet. They are in the order in which
  /// they were taken, snapshots' first.
  public mutating func load(_ bytes: UnsafeRawBufferPointer) throws(RecordError) {
    var reader = RecordReader(bytes)
    while let record = try reader.next() {
      guard load(record) else { throw RecordError(fault: .order, offset: reader.position) }
    }
  }

  /// False where the record makes no sense after those before it.
  private mutating func load(_ record: DurableRecord) -> Bool {
    switch record {
    case .life(let epoch, let seed, let pseudonymKey):
      guard !hasLife || seed == self.seed else { return false }
      if !hasLife { takeLife(seed: seed, pseudonymKey: pseudonymKey) }
      self.epoch = epoch
      hasLife = true
    case .trip(let trip): return hasLife && trips.load(trip, at: now.uptime)
    case .tripForgotten(let id):
      guard let trip = trips.find(id) else { return false }
      removeTrip(trip)
    case .eta(let id, let eta):
      guard let trip = trips.find(id) else { return false }
      trips[trip].told = ToldETA(eta, toldAt: now.uptime)
    case .event(let publication):
      publicationNumber = max(publicationNumber, publication.number)
      return channels.restore(publication)
    case .channel(let name, let sequence): return channels.restore(name, sequence: sequence)
    case .channelForgotten(let name):
      guard let channel = channels.find(name) else { return false }
      _ = channels.setKept(channel, false)
    case .numbersGiven(let number): channels.restore(numbersGiven: number)
    case .fixes(let fixes): return hasLife && load(fixes)
    case .driver(let driver): load(driver)
    case .driverOffline(let id, let time):
      if let driver = findOrInsertDriver(id) { drivers[driver].durable.goOffline(at: time, isStored: true) }
    case .driverForgotten(let id): if let driver = drivers.find(id) { removeDriver(driver) }
    case .tripNumbersGiven(let number): trips.restore(newestNumber: number)
    case .fence(let fence): return hasLife && fences.load(fence)
    case .fenceDeleted(let id): return fences.remove(id) != nil
    case .stay(let stay):
      guard fences.find(stay.fenceID) != nil else { return false }
      if let driver = findOrInsertDriver(stay.driverID) { fences.load(stay, driver: driver) }
    case .stayEnded(let driver, let fence):
      if let driver = drivers.find(driver) { fences.loadEnded(driver: driver, fence: fence) }
    case .pair(let pair): return load(pair)
    case .pairEnded(let fence, let driver, let other):
      if let driver = drivers.find(driver), let other = drivers.find(other) {
        fences.loadEndedPair(driver, other, fence: fence)
      }
    }
    return hasLife
  }

  // A driver that the table has no room for begins anew when it comes.

  private mutating func load(_ fixes: DurableFixes) -> Bool {
    let trip = fixes.tripID.flatMap { trips.find($0) }
    guard trip != nil || fixes.tripID == nil else { return false }
    if let trip, let progress = fixes.progress { trips[trip].progress = progress }
    if let driver = findOrInsertDriver(fixes.driverID) {
      drivers[driver].load(fixes, trip: trip.map { trips.handle(of: $0) })
    }
    return true
  }

  private mutating func load(_ stored: DurableDriver) {
    guard let driver = findOrInsertDriver(stored.id) else { return }
    let trip = stored.tripID.flatMap { trips.find($0) }.map { trips.handle(of: $0) }
    if !drivers.load(stored, driver: driver, trip: trip) { counters.count(full: .profiles) }
  }

  private mutating func load(_ pair: DurablePair) -> Bool {
    guard fences.find(pair.fenceID) != nil, pair.driverID != pair.otherID else { return false }
    if let driver = findOrInsertDriver(pair.driverID), let other = findOrInsertDriver(pair.otherID) {
      fences.load(pair, driver, other)
    }
    return hasLife
  }

  /// Ends the reading, at `start`: what is not stored (deadlines, links between tables, indexes) is made anew.
  /// Presence counts from `start`: before it nothing could reach this hub.
  public mutating func finishLoading(at start: Moment) {
    now = start
    lastStall = start.uptime
    // Positions had numbers too, and theirs are not stored.
    if publicationNumber > 0 { publicationNumber += 1 << 32 }
    for trip in 0..<trips.endIndex where trips.isInUse(trip) { resumeTrip(trip) }
    for name in channels.keptNames() {
      guard case .driver(let id) = name, let driver = findOrInsertDriver(id) else { continue }
      drivers[driver].channel = channels.find(name)
    }
    for driver in 0..<drivers.endIndex where drivers.isInUse(driver) { resume(driver) }
    updateSizes()
  }

  /// Writes the durable state as records, in parts of up to about `partBytes`.
  public func writeSnapshot<E: Error>(
    partBytes: Int = 1 << 20, _ body: (UnsafeRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    var part = ByteBuffer()
    func add(_ record: DurableRecord) throws(E) {
      RecordWriter.write(record, into: &part)
      guard part.count >= partBytes else { return }
      try part.withBytes(body)
      part.removeAll()
    }
    try add(.life(epoch: epoch, seed: seed, pseudonymKey: pseudonymKey))
    try add(.numbersGiven(channels.numbersGiven))
    try add(.tripNumbersGiven(trips.newestNumber))
    for trip in 0..<trips.endIndex where trips.isInUse(trip) { try add(.trip(trips[trip].durable)) }
    for driver in 0..<drivers.endIndex where drivers[driver].durable.isKnown { try add(.driver(durable(driver))) }
    try fences.forEachRecord(of: drivers) { (record) throws(E) in try add(record) }
    try channels.forEachKept { (name, sequence) throws(E) in try add(.channel(name, sequence: sequence)) }
    try channels.forEachEvent { (event) throws(E) in try add(.event(event)) }
    if !part.isEmpty { try part.withBytes(body) }
  }
}
