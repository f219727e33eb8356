// What /metrics shows at the moment in which it is asked.
import Foundation
import HubGateway
import HubRuntime
import Testing

extension EndToEnd {
  @Suite struct MetricsPages {}
}

extension EndToEnd.MetricsPages {
  @Test("a page has what happened before it was asked for, on whichever loop", arguments: [1, 2, 4])
  func fresh(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let watchers = try (0..<12).map { try hub.ops("o\($0)") }
    for watcher in watchers { try watcher.subscribe("driver:d1") }
    for step in 1...20 {
      try driver.sendFix(step)
      for watcher in watchers { _ = try watcher.receive("driver_location") }
      let page = try hub.metrics()
      #expect(page["fixes_received_total"] == Double(step))
      #expect(page["positions_out_total"] == Double(step * watchers.count))
      #expect(page["messages_in_total"] == Double(step + watchers.count))
    }
  }

  @Test(
    "promtool has nothing to say about the page of a hub with a journal",
    .enabled(if: Program.exists("promtool"), "needs promtool, of Debian's package prometheus"))
  func promtool() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "hub-\(UUID().uuidString)")
    defer { do { try FileManager.default.removeItem(at: directory) } catch { print("left behind: \(directory.path)") } }
    let hub = try TestHub { $0.journal = JournalConfiguration(directory: directory.path) }
    let driver = try hub.driver("d1")
    try driver.sendFix(1)
    _ = try driver.settle()
    let page = try hub.get("/metrics").text
    let (process, input, output) = (Process(), Pipe(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["promtool", "check", "metrics"]
    (process.standardInput, process.standardOutput, process.standardError) = (input, output, output)
    try process.run()
    input.fileHandleForWriting.write(Data(page.utf8))
    try input.fileHandleForWriting.close()
    let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0 && said.isEmpty, "\(said)")
  }

  @Test("many ask at once, and each is answered; one that leaves is not waited for")
  func many() throws {
    let hub = try TestHub(loops: 3)
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    let connections = try (0..<20).map { _ in try hub.connect() }
    for connection in connections { try connection.send(request + request) }
    for connection in connections.prefix(5) { connection.close() }
    for connection in connections.dropFirst(5) {
      for _ in 0..<2 { #expect(try connection.readResponse().status == 200) }
    }
    try hub.metrics { $0["connections"] == 16 }  // fifteen, and who asks
  }

  @Test(
    "`simulate` counts as sent what the hub received",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func simulated() throws {
    let hub = try TestHub(loops: 2)
    let url = "ws://127.0.0.1:\(hub.port)/v1/ws"
    let simulation = try HubProcess(["simulate", "--url", url, "--drivers", "300"])
    try hub.metrics { $0["fixes_received_total"] > 100 }
    simulation.send(signal: SIGTERM)
    let outcome = try simulation.outcome()
    let received = try hub.metrics()["fixes_received_total"]
    #expect(outcome.status == 0 && received > 100)
    #expect(outcome.output.contains("300 drivers sent \(Int(received)) fixes in"), "\(outcome.output), \(received)")
  }
}
