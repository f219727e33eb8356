// The journal of a hub of the simulated cluster, on a disk that outlives its processes.
import HubBytes
import HubCore
import HubJournal
import HubJournalSupport
import HubMessages
import HubTestSupport

final class MemberJournal {
  private let disk: SimulatedDisk
  private let commit: GroupCommit
  private var writer: JournalWriter
  private var groups = GroupCommit.PendingGroups()
  /// The disk does not answer for a while.
  var isStalled = false

  /// Reads what is on the disk into a hub that has not handled anything, and has it store what comes.
  init(_ disk: SimulatedDisk, into hub: inout Hub, epoch: String, now: Moment) {
    var limits = JournalLimits()
    limits.segmentBytes = 20_000
    self.disk = disk
    commit = GroupCommit(limits: limits)
    do throws(JournalError) {
      let recovered = try disk.recover(limits, damage: .refuse, into: &hub)
      hub.finishLoading(at: now)
      hub.attachJournal(
        limit: limits.groupBytes / 2, startsEpoch: recovered.report.startsAnew, epoch: InlineText(epoch)!)
      writer = recovered.takeWriter()
    } catch {
      preconditionFailure("a disk that only dies with its hub: \(error)")
    }
  }

  /// What is stored by now leaves the hub.
  func release(_ hub: inout Hub) { hub.stored(through: commit.durableThrough, condition: .good) }

  func submit(_ hub: inout Hub) {
    hub.takeRecords { records, ticket in commit.submit(records, ticket: ticket, isUrgent: true) }
  }

  /// Writes a group; false where the process died over it.
  @discardableResult
  func write(now: Moment) -> Bool {
    if isStalled { return true }
    do throws(JournalError) {
      _ = try commit.writeGroup(&groups, &writer, created: now.timestamp.milliseconds)
      return true
    } catch {
      return false
    }
  }

  /// The process dies, in the middle of a write if there is one; or its machine loses power then.
  func die(_ random: inout SplitMix64, now: Moment) {
    isStalled = false
    disk.callsUntilDeath = Int(random.next() % 4)
    write(now: now)
    if random.next() % 2 == 0 { disk.cutPower(&random) }
    disk.revive()
  }
}
