// modules: HubBytes HubGeo HubMessages HubCore
// libFuzzer entry for the journal's records (run.sh in this folder builds and runs it).
//
// Input: records, without their lengths: each is a length byte and so many bytes. Checked beyond not crashing: what is
// read and written again is the same, byte for byte; a hub that has taken them all continues, and a snapshot of it is
// taken by another hub, whose own snapshot is the same.

import HubBytes
import HubGeo
import HubMessages

@testable import HubCore

private let now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_763_680_000_000))

private func makeHub() -> Hub {
  Hub(
    limits: HubLimits(
      drivers: 16, trips: 16, channels: 64, eventsPerChannel: 8, events: 32, queryHits: 8,
      queryBudget: SearchBudget(cells: 16, candidates: 16), fixTimesPerDriver: 4, driversWithFixTimes: 4, profiles: 4),
    timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("first")!, seed: 7, outlets: 1, now: now)
}

/// Each record with its length before it, as the journal has them.
private func records(_ data: ArraySlice<UInt8>) -> [UInt8] {
  var rest = data
  var bytes: [UInt8] = []
  while let length = rest.popFirst() {
    let record = rest.prefix(Int(length))
    rest = rest.dropFirst(record.count)
    bytes += [UInt8(record.count), 0, 0, 0] + record
  }
  return bytes
}

/// Reads what can be read; true if that was all of it, and nothing was refused.
private func checkReading(_ bytes: UnsafeRawBufferPointer) -> Bool {
  var reader = RecordReader(bytes)
  var written = ByteBuffer()
  do throws(RecordError) {
    while let record = try DurableRecord.next(from: &reader) { RecordWriter.write(record, into: &written) }
  } catch {
    precondition(error.offset <= bytes.count)
    precondition(written.array().elementsEqual(bytes[..<written.count]), "what was read is written the same")
    return false
  }
  precondition(written.array().elementsEqual(bytes), "what was read is written the same")
  return true
}

private func snapshot(of hub: inout Hub) -> [UInt8] {
  var bytes: [UInt8] = []
  hub.writeSnapshot { bytes += $0 }
  return bytes
}

private func reloaded(_ snapshot: [UInt8]) -> Hub {
  var hub = makeHub()
  do throws(RecordError) {
    let bytes = snapshot.span.bytes
    try bytes.withUnsafeBytes { (bytes) throws(RecordError) in try hub.load(bytes) }
  } catch {
    preconditionFailure("a snapshot is refused: \(error)")
  }
  hub.finishLoading(at: now)
  return hub
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRecords(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = records(Array(UnsafeBufferPointer(start: start, count: count))[...])
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { memory.deallocate() }
  memory.copyBytes(from: bytes)
  let isReadable = checkReading(UnsafeRawBufferPointer(memory))
  var hub = makeHub()
  do throws(RecordError) {
    try hub.load(UnsafeRawBufferPointer(memory))
    precondition(isReadable)
  } catch {
    return 0
  }
  hub.finishLoading(at: now)
  hub.process([], now: now)
  // The first snapshot brings the tables into the order of the second.
  let first = snapshot(of: &hub)
  var copy = reloaded(first)
  let second = snapshot(of: &copy)
  precondition(second.count == first.count, "nothing is lost")
  copy = reloaded(second)
  precondition(snapshot(of: &copy) == second)
  return 0
}
