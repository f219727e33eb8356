// modules: HubBytes HubSystem HubJournal
// libraries: ssl crypto
// libFuzzer entry for what a start reads from the disk (run.sh in this folder builds and runs it).
//
// Input: one byte of flags (bit 0: this is the last segment, bit 1: all that follows is the file, bit 2: it is cut
// instead of changed), two bytes that say where, four that are XORed there, then the payloads, each a length byte and
// its bytes. A check sum of 32 bits finds every change within 32 bits, so the groups before the change must come out as
// they were written, and none that is not one of them. What comes out is also taken for a snapshot.

import HubBytes
import HubSystem

@testable import HubJournal

private let limits = JournalLimits()
private let first: UInt64 = 41

/// A segment with these groups, and where each of them ends.
private func segment(_ payloads: [[UInt8]]) -> (bytes: [UInt8], ends: [Int]) {
  let crc = CRC32C()
  let header = FileHeader(kind: .segment, group: first, created: 1)
  var bytes = header.encoded(crc)
  var ends: [Int] = []
  for (index, payload) in payloads.enumerated() {
    payload.withUnsafeBytes { GroupHeader.encode(first + UInt64(index), $0, crc, seed: header.seed, into: &bytes) }
    ends.append(bytes.count)
  }
  return (bytes, ends)
}

private final class MemoryFile: ReadableJournalFile {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func size() -> Int { bytes.count }

  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let found = bytes.dropFirst(offset).prefix(buffer.count)
    buffer.copyBytes(from: found)
    return found.count
  }
}

private func payloads(_ data: ArraySlice<UInt8>) -> [[UInt8]] {
  var rest = data
  var payloads: [[UInt8]] = []
  while let length = rest.popFirst() {
    payloads.append(Array(rest.prefix(Int(length))))
    rest = rest.dropFirst(Int(length))
  }
  return payloads
}

/// The groups that are found, and how it ends. The bytes lie in memory of their own, so that the address sanitizer sees
/// a read beyond them.
private func scan(_ bytes: [UInt8], isLast: Bool) -> (groups: [[UInt8]], end: SegmentEnd) {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { memory.deallocate() }
  memory.copyBytes(from: bytes)
  let whole = UnsafeRawBufferPointer(memory)
  do throws(SystemError) { _ = try SnapshotFile.read(MemoryFile(bytes), group: first, limits: limits) } catch {
    preconditionFailure("memory can be read: \(error)")
  }
  let scan = SegmentScan(limits: limits)
  var next = first
  var groups: [[UInt8]] = []
  let end = scan.read(whole, file: "s", isLast: isLast, next: &next) { number, offset, payload in
    precondition(number == first + UInt64(groups.count), "in order")
    precondition(offset + GroupHeader.size + payload.count <= bytes.count)
    groups.append(Array(payload))
  }
  precondition(next == first + UInt64(groups.count))
  switch end {
  case .torn(let offset): precondition(isLast && offset <= bytes.count, "only the last segment has a torn tail")
  case .damaged(let damage): precondition(damage.offset <= bytes.count)
  case .complete, .otherVersion: break
  }
  return (groups, end)
}

private func fuzzFile(_ flags: UInt8, _ offset: Int, _ change: ArraySlice<UInt8>, _ written: [[UInt8]]) {
  let isLast = flags & 1 == 1
  let (bytes, ends) = segment(written)
  var changed = bytes
  let at = offset % (bytes.count + 1)
  if flags & 4 == 4 {
    changed.removeSubrange(at...)
  } else {
    for (offset, mask) in change.enumerated() where at + offset < changed.count { changed[at + offset] ^= mask }
  }
  let (groups, end) = scan(changed, isLast: isLast)
  guard changed != bytes else {
    precondition(groups == written && end == .complete)
    return
  }
  let last = flags & 4 == 4 ? at : at + (change.firstIndex { $0 != 0 } ?? 0) - change.startIndex
  let untouched = last < FileHeader.size ? 0 : ends.prefix { $0 <= last }.count
  precondition(groups.elementsEqual(written.prefix(untouched)), "what was whole is there, and nothing else")
  if flags & 4 == 4, isLast {
    // Cut between two groups it looks complete, which is right: the rest was never acknowledged.
    let isBorder = at == ends.last(where: { $0 <= at }) ?? FileHeader.size
    let begins = untouched == 0 ? FileHeader.size : ends[untouched - 1]
    precondition(end == (isBorder ? .complete : .torn(at: at < FileHeader.size ? 0 : begins)))
  } else {
    precondition(end != .complete || flags & 4 == 4, "a change is not overlooked")
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJournal(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard count >= 7 else { return 0 }
  if input[0] & 2 == 2 {
    _ = scan(Array(input[1...]), isLast: input[0] & 1 == 1)
  } else {
    fuzzFile(input[0], Int(input[1]) << 8 | Int(input[2]), input[3..<7], payloads(input[7...]))
  }
  return 0
}
