// `journal`: inspects or copies the directory of a hub's durable state, beside the hub or without one. Changes nothing
// there.
import Glibc
import HubBytes
import HubCommandLine
import HubCore
import HubJournal
import HubMessages
import HubSystem

let journal = Verb(
  name: "journal", operands: "inspect|verify|export DIR | backup DIR TARGET",
  summary: """
    Looks into a hub's journal, also while the hub runs; changes nothing.
    inspect: what is there: files, groups, bytes, times, the epoch.
    verify: reads every byte, and lists what has changed since it was written; exit code 1 then.
    export: every record of the segments as a line of JSON, oldest first (protocol/journal.md).
    backup: copies what is stored to TARGET, a new directory, and reads it back: serve --data TARGET starts from it.
    """,
  options: [
    Option("since", "TIME", "export: from the segment on in which this time is (RFC 3339, or ms since 1970)"),
    Option("audit", nil, "export: only who asked what about tokens, and with what outcome (protocol/tokens.md)"),
  ],
  run: runJournal)

private func runJournal(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  guard arguments.operands.count >= 2 else {
    throw .usage("journal takes a word and a directory: locationhub journal inspect ./data")
  }
  let (word, directory) = (arguments.operands[0], arguments.operands[1])
  guard arguments.operands.count == (word == "backup" ? 3 : 2) else {
    throw .usage("journal backup takes two directories, all else one: locationhub journal backup ./data ./copy")
  }
  let since = try arguments.string("since").map { (text) throws(CommandError) in try time(text) }
  guard since == nil || word == "export" else { throw .usage("--since is for journal export") }
  let isAudit = arguments.has("audit")
  guard !isAudit || word == "export" else { throw .usage("--audit is for journal export") }
  let action: (DiskFiles) throws(JournalError) -> ExitCode
  switch word {
  case "inspect": action = inspect
  case "verify": action = verify
  case "export": action = { (files) throws(JournalError) in try export(files, since: since, isAudit: isAudit) }
  case "backup": action = { (files) throws(JournalError) in try backup(files, to: arguments.operands[2]) }
  default: throw .usage("journal knows inspect, verify, export and backup, not \(word)")
  }
  do throws(JournalError) {
    let files = try DiskFiles(beside: directory)
    if try JournalInventory.isThere(in: files) { return try action(files) }
  } catch {
    throw .failed("\(error)")
  }
  throw .failed("\(directory): no journal is there, neither a segment nor a snapshot")
}

private func time(_ text: String) throws(CommandError) -> Timestamp {
  var text = text
  let written = text.withUTF8 { unsafe Timestamp(rfc3339: UnsafeRawBufferPointer($0)) }
  guard let time = written ?? Double(text).flatMap({ Timestamp(number: $0, format: .unixMilliseconds) }) else {
    throw .usage("--since must be a time like 2026-11-21T10:00:00Z or milliseconds since 1970, not \(text)")
  }
  return time
}

/// The result of reading a payload; an unreadable record is the payload's fault.
private func asPayload<Value>(_ read: () throws(RecordError) -> Value) throws(InvalidPayload) -> Value {
  do throws(RecordError) { return try read() } catch { throw InvalidPayload("\(error)") }
}

// MARK: - inspect

private func inspect(_ files: DiskFiles) throws(JournalError) -> ExitCode {
  let inventory = try JournalInventory(files, limits: JournalLimits())
  var text = ""
  for snapshot in inventory.snapshots {
    text += row(snapshot.name, "through group \(snapshot.group)", snapshot.bytes, snapshot.created)
  }
  var last = inventory.segments.last.map { max(1, $0.first) - 1 } ?? inventory.snapshots.last?.group ?? 0
  var groups: UInt64 = 0
  var epoch = try newestSnapshotEpoch(files)
  var damage = ""
  do throws(JournalError) {
    try unsafe forEachGroup(of: files, limits: JournalLimits()) { (number, payload) throws(InvalidPayload) in
      last = number
      groups += 1
      epoch = try asPayload { () throws(RecordError) in try unsafe RecordJSON.lastEpoch(in: payload) } ?? epoch
      return true
    }
  } catch {
    damage = "\(error)\n"  // the rest is shown all the same
  }
  for (index, segment) in inventory.segments.enumerated() {
    let next = index + 1 < inventory.segments.count ? inventory.segments[index + 1].first : last + 1
    let range = next > segment.first ? "groups \(segment.first) to \(next - 1)" : "no group yet"
    text += row(segment.name, range + (segment.indexBytes == nil ? "" : ", indexed"), segment.bytes, segment.created)
  }
  text += "epoch \(epoch ?? "none"), \(inventory.segments.count) segments with \(groups) groups, "
  text += "\(inventory.snapshots.count) snapshots, \(inventory.bytes) bytes\n"
  StandardStream.output.write(text + damage)
  return damage.isEmpty ? .ok : .failed
}

/// The epoch of the newest complete snapshot.
private func newestSnapshotEpoch(_ files: DiskFiles) throws(JournalError) -> String? {
  var epoch: String?
  _ = try unsafe Recovery(files: files, limits: JournalLimits()).read(through: 0) { (part) throws(InvalidPayload) in
    epoch = try asPayload { () throws(RecordError) in try unsafe RecordJSON.lastEpoch(in: part) } ?? epoch
  } group: { _, _ in
  }
  return epoch
}

private func row(_ name: String, _ what: String, _ bytes: Int, _ created: Int64?) -> String {
  var time = ByteBuffer()
  if let created {
    time.append(Timestamp(milliseconds: created), as: .rfc3339)
  } else {
    time.append("header is damaged")
  }
  let size = "\(bytes)"
  let padding = String(repeating: " ", count: max(1, 14 - size.utf8.count))
  return "\(name)\(padding)\(size)  \(String(decoding: time.array(), as: UTF8.self))  \(what)\n"
}

// MARK: - verify

private let recordKeys: RecordKeys = { payload, note in unsafe DurableKeys.forEach(in: payload, note) }

private func check(_ records: UnsafeRawBufferPointer) throws(InvalidPayload) {
  try asPayload { () throws(RecordError) in try unsafe RecordJSON.check(records) }
}

private func verify(_ files: DiskFiles) throws(JournalError) -> ExitCode {
  var verifier = unsafe Verifier(files: files, limits: JournalLimits(), keys: recordKeys)
  let found = try unsafe verifier.run(check)
  var text = ""
  for damage in found.damages { text += "damaged: \(damage)\n" }
  for name in found.brokenIndexes { text += "\(name) does not fit its segment: it is made again when it is needed\n" }
  if let tail = found.unfinished {
    text += "\(tail.file): \(tail.bytes) bytes at byte \(tail.offset) are a write that is under way, or was cut\n"
  }
  text += "\(found.segments) segments with \(found.groups) groups, \(found.snapshots) snapshots, \(found.bytes) bytes: "
  text += found.damages.isEmpty ? "good\n" : "\(found.damages.count) damaged\n"
  StandardStream.output.write(text)
  return found.damages.isEmpty ? .ok : .failed
}

// MARK: - export

private func export(_ files: DiskFiles, since: Timestamp?, isAudit: Bool) throws(JournalError) -> ExitCode {
  do throws(SystemError) { try blockSignals([SIGPIPE]) } catch { throw .system(error, file: files.path) }
  var output = ByteBuffer()
  var hasReader = true
  func flush(over limit: Int) {
    guard output.count > limit else { return }
    // A reader that closes the pipe, such as `head`, ends the program without an error.
    hasReader = unsafe output.withBytes { unsafe StandardStream.output.write($0) }
    output.removeAll(keepingAtMost: 1 << 20)
  }
  do throws(JournalError) {
    try unsafe forEachGroup(of: files, limits: JournalLimits(), since: since?.milliseconds ?? .min) {
      (number, records) throws(InvalidPayload) in
      try asPayload { () throws(RecordError) in
        try unsafe RecordJSON.write(records, group: number, onlyAudit: isAudit, into: &output)
      }
      flush(over: 1 << 16)
      return hasReader
    }
  } catch {
    flush(over: 0)
    throw error
  }
  if hasReader { flush(over: 0) }
  return .ok
}

// MARK: - backup

private func backup(_ files: DiskFiles, to target: String) throws(JournalError) -> ExitCode {
  // A limit on the size of files (ulimit -f) counts as a full disk: the partial copy is removed, and the error
  // reported.
  // All segments are open at once: 1,024 of them where the journal is as large as it may be by default.
  do throws(SystemError) {
    try ignoreSignals([SIGXFSZ])
    _ = try ProcessFacts.raiseOpenFileLimit()
  } catch { throw .system(error, file: target) }
  let backup = try unsafe JournalBackup.make(
    of: files, at: target, limits: JournalLimits(), keys: recordKeys, check)
  for damage in backup.damages { StandardStream.error.write("damaged history: \(damage)\n") }
  let state = backup.damages.isEmpty ? "good" : "a hub starts from it, and its older history is damaged as it was"
  StandardStream.output.write(
    "\(target): \(backup.files) files, \(backup.bytes) bytes, through group \(backup.lastGroup): \(state)\n")
  return .ok
}
