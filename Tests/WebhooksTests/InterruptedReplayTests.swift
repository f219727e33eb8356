// A replay by time that something else comes between, before the webhook has read that far again.
import HubBytes
import HubMessages
import Testing

@testable import HubWebhooks

@Suite struct InterruptedReplayTests {
  /// The events that come of a replay since the third of four, and of what is asked in the same turn. All are delivered
  /// before; 1 and 3 are of one channel, 2 and 4 of another.
  private func events(_ other: (LoopScene, Timestamp) throws -> WebhookQuestion) throws -> Set<String> {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(
      .put(
        try WebhookDefinition(
          name: "orders", members: ["url": .string("http://127.0.0.1:9/"), "channels": .array([.string("*")])])))
    for trip in ["T1", "T2"] { try scene.publish(trip) }
    scene.advance(10)
    let since = scene.now
    for trip in ["T1", "T2"] { try scene.publish(trip) }
    #expect(Set(scene.takeEvents()) == ["1", "2", "3", "4"])
    #expect(scene.control.ask(.replay("orders", .since(since))) { _ in })
    _ = scene.ask(try other(scene, since))
    return Set(scene.takeEvents())
  }

  private func id(_ title: String, _ scene: LoopScene) throws -> EventID {
    try #require(scene.ids[title].flatMap { EventID($0) })
  }

  @Test("A webhook that is enabled or gets another secret meanwhile skips what it would have skipped")
  func continued() throws {
    #expect(try events { _, _ in .enable("orders") } == ["3", "4"])
    #expect(try events { _, _ in .rotateSecret("orders") } == ["3", "4"])
  }

  @Test("What another replay has come again comes, and nothing besides")
  func anotherReplay() throws {
    #expect(try events { scene, _ in .replay("orders", .events([try self.id("2", scene)])) } == ["2", "3", "4"])
    #expect(try events { scene, _ in .replay("orders", .from(try self.id("2", scene))) } == ["2", "3", "4"])
    #expect(try events { scene, _ in .replay("orders", .from(try self.id("1", scene))) } == ["1", "2", "3", "4"])
  }

  @Test("Of two times the earlier one counts")
  func anotherTime() throws {
    func after(_ seconds: Double) throws -> Set<String> {
      try events { .replay("orders", .since(Timestamp(milliseconds: $1.milliseconds + Int64(seconds * 1000)))) }
    }
    #expect(try after(0) == ["3", "4"] && after(1) == ["3", "4"])
    #expect(try after(-11) == ["1", "2", "3", "4"])
  }
}
