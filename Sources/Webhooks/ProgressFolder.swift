// The folder beside a journal in which webhooks and streams store how far they are.
public import HubJournal
public import HubRuntime
import HubSystem

/// Where webhooks and streams read and store.
public struct WebhookSource: Sendable {
  let journal: JournalConfiguration
  let commit: GroupCommit
  /// For the ids of a progress that begins: digits and letters.
  let epoch: String
  /// A part of the journal was given up at this start.
  let startsAnew: Bool

  public init(journal: JournalConfiguration, commit: GroupCommit, epoch: String, startsAnew: Bool) {
    self.journal = journal
    self.commit = commit
    self.epoch = epoch
    self.startsAnew = startsAnew
  }
}

final class ProgressFolder {
  private let source: WebhookSource
  private let log: Log
  private let files: DiskFiles

  init(_ source: WebhookSource, _ log: Log) throws(JournalError) {
    self.source = source
    self.log = log
    files = try DiskFiles(path: source.journal.directory + "/" + WebhookRequest.folder)
  }

  /// The progress of the webhook or stream of this name; one that begins does so behind group `newest`. What an
  /// operator has asked for is done. `isFirst`: the hub has just started.
  func open(
    _ name: String, _ newest: UInt64, isFirst: Bool
  ) throws(JournalError) -> (file: ProgressFile, progress: DeliveryProgress) {
    let start = DeliveryProgress(cursor: JournalPlace(group: newest + 1, record: 0))
    let (file, requestName) = (name + ProgressFile.suffix, WebhookRequest.file(name))
    do throws(SystemError) {
      let text =
        try files.about(requestName) == nil ? nil : String(decoding: try files.read(requestName), as: UTF8.self)
      let opened = try ProgressFile.open(
        files, file, epoch: source.epoch, startsAnew: source.startsAnew && isFirst, from: start,
        text.flatMap { WebhookRequest($0) })
      if let text {
        try files.remove(requestName)
        log(.info, "webhook_request", ["webhook": name, "request": text])
      }
      return opened
    } catch {
      throw .system(error, file: file)
    }
  }

  func deadLetters(_ name: String) -> DeadLetterFile { DeadLetterFile(files, name) }

  /// A reader of the journal from a group on.
  func tail(from group: UInt64) throws(JournalError) -> JournalTail {
    try JournalTail(directory: source.journal.directory, limits: source.journal.limits, next: group)
  }
}
