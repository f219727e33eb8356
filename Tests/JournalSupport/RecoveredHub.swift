// A hub that reads its journal from a simulated disk, as `locationhub serve --data` does from a real one.
public import HubCore
public import HubJournal

extension SimulatedDisk {
  /// Reads the journal into a hub that has not handled anything; `group` is shown each group that was read behind the
  /// snapshot.
  public func recover(
    _ limits: JournalLimits, damage: DamagePolicy, into hub: inout Hub,
    group show: (_ number: UInt64, _ records: UnsafeRawBufferPointer) -> Void = { _, _ in }
  ) throws(JournalError) -> Recovered {
    try Recovery(files: self, limits: limits).run(damage: damage) { (part) throws(InvalidPayload) in
      try load(part, into: &hub)
    } group: { (number, records) throws(InvalidPayload) in
      try load(records, into: &hub)
      show(number, records)
    }
  }

  private func load(_ records: UnsafeRawBufferPointer, into hub: inout Hub) throws(InvalidPayload) {
    do throws(RecordError) { try hub.load(records) } catch { throw InvalidPayload("\(error)") }
  }
}
