// What `DriverHub` itself says to the app, with no hub in reach.
import Foundation
import HubGeo
import HubMessages
import Testing

@testable import LocationHubClient

@Suite(.timeLimit(.minutes(5))) struct DriverHubTests {
  private func driver(_ store: FixStore) throws -> DriverHub {
    try DriverHub("ws://127.0.0.1:9", tokens: .development(.driver, "d1"), store: store)
  }

  private func fix(_ number: Int) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 48, longitude: 11)!,
      timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(number) * 2000), accuracy: 5)
  }

  @Test("where a full disk makes old fixes give way, send says so")
  func droppedOldest() async throws {
    let full = FixStore(
      backing: .files {
        let disk = QueueDisk()
        disk.room = 0
        return QueueFiles(disk)
      })
    let driver = try driver(full)
    for number in 0..<FixQueue.maximumUnsaved + 5 { #expect(driver.send(fix(number), trip: "T1") != .full) }
    for await backlog in driver.backlog where backlog.dropped == 5 {
      #expect(try #require(backlog.diskFailure).contains("No space left on device"))
      break
    }
    #expect(driver.send(fix(9000), trip: "T1") == .droppedOldest)
    await driver.stop()
  }

  @Test("an erased client keeps nothing any more, and the folder's next one loses nothing to it")
  func erased() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "queue-\(UUID().uuidString)").path
    let first = try driver(.folder(path))
    first.send(fix(0), trip: "T1")
    await first.stop(erasing: true)
    let second = try driver(.folder(path))
    for number in 0..<5 { #expect(second.send(fix(number), trip: "T1") == .queued) }
    for number in 5..<7 { #expect(first.send(fix(number), trip: "T1") == .full) }
    await first.stop(erasing: true)
    await second.stop()
    #expect(second.backlog.current.fixes == 5 && second.backlog.current.oldest == fix(0).timestamp)
    #expect(FileManager.default.fileExists(atPath: path + "/0000000000000001.queue"))
    await second.stop(erasing: true)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("when stop returns the store is free, for another client and for the same one; until then it is in use")
  func handedOver() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "queue-\(UUID().uuidString)").path
    let first = try driver(.folder(path))
    first.send(fix(0), trip: "T1")
    do throws(HubError) {
      _ = try DriverHub("ws://127.0.0.1:9", tokens: .development(.driver, "d1"), store: .folder(path))
      Issue.record("the first one has it")
    } catch {
      #expect(error.code == .storage && error.retry == .later(after: nil))
      #expect(error.explanation.contains("another client uses it"))
    }
    await first.stop()
    let second = try driver(.folder(path))
    #expect(second.backlog.current.fixes == 1)
    first.start()
    for await state in first.connection {
      if case .stopped(let error) = state, error.code == .storage { break }
    }
    second.send(fix(1), trip: "T1")
    await second.stop()
    first.start()
    for await backlog in first.backlog where backlog.fixes == 2 { break }
    await first.stop(erasing: true)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("numbers below 0 for what cannot be, and what is no number, are unknown; a fix of 1970 is refused")
  func unknownNumbers() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "queue-\(UUID().uuidString)").path
    let driver = try driver(.folder(path))
    var unknown = fix(0)
    (unknown.accuracy, unknown.heading, unknown.speed, unknown.altitude) = (-1, -1, .nan, .infinity)
    (unknown.headingAccuracy, unknown.speedAccuracy, unknown.batteryLevel) = (-1, -.infinity, -1)
    #expect(driver.send(unknown, trip: "T1") == .queued)
    var early = fix(1)
    early.timestamp = Timestamp(milliseconds: 1000)
    #expect(driver.send(early, trip: "T1") == .leftOut)
    await driver.stop()
    #expect(driver.backlog.current.refused == 1)
    let queue = try FixQueue(FolderFiles(path))
    let kept = Fix(coordinate: unknown.coordinate, timestamp: unknown.timestamp)
    #expect(queue.take(10).map(\.record) == [.fix(kept, trip: "T1")])
    queue.erase()
  }

  @Test("a hub over TLS that is not there is reported, like one without")
  func secure() async throws {
    let rider = try RiderHub("wss://127.0.0.1:9", tokens: .development(.rider, "r1"))
    rider.start()
    for await state in rider.connection {
      guard case .waiting(_, let error) = state else { continue }
      #expect(error.code == .unreachable)
      break
    }
    await rider.stop()
  }

  @Test("questions that are cancelled offline leave room for others")
  func cancelled() async throws {
    let rider = try RiderHub("ws://127.0.0.1:9", tokens: .development(.rider, "r1"))
    for _ in 0..<3 {
      let tasks = (0..<HubEngine.maximumRequests).map { _ in Task { try await rider.getTrip("T1") } }
      for task in tasks { task.cancel() }
      for task in tasks { await #expect(throws: HubError.cancelled) { try await task.value } }
    }
    await rider.stop()
  }

  @Test("a storage error names the folder and says why in words")
  func storage() throws {
    do throws(HubError) {
      _ = try DriverHub("ws://127.0.0.1:9", tokens: .fixed("x"), store: .folder("/dev/null/queue"))
      Issue.record("there is no such folder")
    } catch {
      #expect(error.code == .storage)
      #expect(error.explanation == "the queue in /dev/null/queue: mkdir: Not a directory (20)")
    }
  }

  @Test("each driver may have a folder of its own")
  func stores() {
    guard case .folder(let one) = FixStore.applicationSupport(for: "..").backing,
      case .folder(let all) = FixStore.applicationSupport.backing
    else { return #expect(Bool(false)) }
    #expect(one.hasSuffix("/location-hub/queues/driver-..") && all.hasSuffix("/location-hub/queue"))
  }
}
