// Appends groups to the newest segment: one write and one fdatasync each, and never one behind a group that is not
// known to be on stable storage. Blocks; it belongs to the journal's own thread.
import Glibc
import HubSystem

public struct JournalWriter: ~Copyable {
  private let files: any JournalFiles
  private let limits: JournalLimits
  private let crc = CRC32C()
  /// The number of the next group.
  public private(set) var next: UInt64
  private var segment: (any JournalFile)?
  private var segmentName = ""
  private var bytes: [UInt8] = []
  /// A write failed in a way after which the kernel's word is worth nothing.
  private var hasStopped = false
  /// A loss was accepted, and nothing was written since (LossMark.swift).
  private var hasLossMark: Bool

  /// Goes on behind group `next - 1`, in `segment` where there is one that ends there.
  init(
    files: any JournalFiles, limits: JournalLimits, next: UInt64, segment: String?, hasLossMark: Bool
  ) throws(JournalError) {
    limits.validate()
    self.hasLossMark = hasLossMark
    self.files = files
    self.limits = limits
    self.next = next
    guard let segment else { return }
    segmentName = segment
    do throws(SystemError) {
      self.segment = try files.open(segment)
    } catch {
      throw .system(error, file: segment)
    }
  }

  /// Has the next group begin a segment of its own: the newest one is full now, and is not written to again.
  public mutating func sealSegment() { segment = nil }

  /// Writes one group and returns when it is on stable storage; its number. `created` is in ms since 1970, for a new
  /// segment's header.
  ///
  /// After `full` and `gone` the same payload may be given again, now or later: nothing of it is there. After any other
  /// error the writer throws `stopped` for ever.
  public mutating func append(_ payload: UnsafeRawBufferPointer, created: Int64) throws(JournalError) -> UInt64 {
    guard !hasStopped else { throw .stopped }
    precondition(payload.count <= limits.groupBytes, "the caller makes no group over the limit")
    try checkPlace()
    let file = try fileForGroup(of: payload.count, created: created)
    bytes.removeAll(keepingCapacity: true)
    unsafe GroupHeader.encode(next, payload, crc, into: &bytes)
    try store(bytes, in: file)
    if hasLossMark { removeLossMark() }
    let number = next
    next += 1
    return number
  }

  /// Throws `gone` where the next start would not find what is written. Looked at before each group, so that nothing is
  /// acked that was gone when it came; two short calls beside an fdatasync.
  public func checkPlace() throws(JournalError) {
    guard files.isInPlace else { throw .gone(path: files.path) }
    guard segment?.isLinked ?? true else { throw .gone(path: "\(files.path)/\(segmentName)") }
  }

  /// Bytes that are free on the disk; nil where it does not say.
  func freeBytes() -> UInt64? { files.freeBytes() }

  private mutating func removeLossMark() {
    do throws(SystemError) {
      try files.remove(LossMark.name)
      hasLossMark = false
    } catch {
      return  // the next group tries again; a start before that begins another epoch, which harms nobody
    }
  }

  /// The newest segment, or a new one where that is full enough.
  private mutating func fileForGroup(of size: Int, created: Int64) throws(JournalError) -> any JournalFile {
    if let segment {
      let isEmpty = segment.size <= FileHeader.size
      if isEmpty || segment.size + GroupHeader.size + size <= limits.segmentBytes { return segment }
    }
    let header = FileHeader(kind: .segment, group: next, created: created)
    segmentName = header.name
    segment = nil
    let file: any JournalFile
    do throws(SystemError) {
      file = try files.open(header.name)
      // What an attempt without room may have left.
      if file.size > 0 { try file.truncate(to: 0) }
    } catch {
      throw failure(error, takesBack: true)
    }
    try store(header.encoded(crc), in: file)
    do throws(SystemError) {
      try files.synchronize()
    } catch {
      throw failure(error, takesBack: false)
    }
    segment = file
    return file
  }

  private mutating func store(_ bytes: [UInt8], in file: any JournalFile) throws(JournalError) {
    let size = file.size
    do throws(SystemError) {
      try unsafe bytes.withBytes { (bytes) throws(SystemError) in try unsafe file.append(bytes) }
    } catch {
      throw failure(error, takesBack: takeBack(file, to: size))
    }
    do throws(SystemError) {
      try file.synchronize()
    } catch {
      // Never tried again: the pages that could not be written may have been dropped and counted as clean.
      throw failure(error, takesBack: false)
    }
  }

  private func takeBack(_ file: any JournalFile, to size: Int) -> Bool {
    do throws(SystemError) {
      try file.truncate(to: size)
      return true
    } catch {
      return false
    }
  }

  /// A full disk, quota or file (`ulimit -f`) is passing trouble where what was written could be taken back; everything
  /// else is the end.
  private mutating func failure(_ error: SystemError, takesBack: Bool) -> JournalError {
    if takesBack, [ENOSPC, EDQUOT, EFBIG].contains(error.errno) {
      return .full(error, file: "\(files.path)/\(segmentName)")
    }
    hasStopped = true
    return .system(error, file: segmentName)
  }
}
