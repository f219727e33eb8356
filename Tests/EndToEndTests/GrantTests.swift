// A grant for a trip over sockets: who follows a trip without its token naming it, and how everybody's end comes.
import Foundation
import HubClientLoop
import HubCore
import HubGateway
import HubMessages
import HubRuntime
import HubSystem
import HubTokens
import HubWebSocket
import Testing

extension EndToEnd {
  @Suite struct Grants {}
}

/// Tokens to be used one after the other.
private final class TokenList: Sendable {
  private let list: Locked<[String]>

  init(_ list: [String]) { self.list = Locked(list) }

  func next() -> TokenAnswer { list.withLock { $0.isEmpty ? .none : .token($0.removeFirst()) } }
}

extension EndToEnd.Grants {
  private func post(_ peer: Peer, _ trip: String, _ status: String, _ more: [String: Any] = [:]) throws {
    var payload: [String: Any] = ["tripId": trip, "status": status, "timestamp": 1_763_680_000_000]
    payload.merge(more) { $1 }
    let id = try peer.send("trip_status", payload)
    while true {
      let ack = try peer.skip(to: "ack")
      if ack.replyTo == id { return }
    }
  }

  @Test(
    "a grant ends with its trip: after the grace a shared link shows nothing, and the trip's own people get its events",
    arguments: loopCounts)
  func ends(loops: Int) throws {
    let hub = try TokenHub(loops: loops) { $0.timings.tripGrace = 0.5 }
    let ops = try hub.join(hub.token(.ops, "o1"))
    let own = try hub.join(hub.token(.rider, "r1"))
    let friend = try hub.join(hub.token(.rider, "r2", trips: ["T1"]))
    let stranger = try hub.join(hub.token(.rider, "r3", trips: ["T2"]))
    let driver = try hub.join(hub.token(.driver, "D1"))
    #expect(try own.answer(toSubscribing: "trip:T1") == "forbidden", "nobody has asked for it yet")
    try post(ops, "T1", "requested", ["driverId": "D1", "riderId": "r1"])
    let epoch = try #require(try own.subscribe("trip:T1").string("epoch"))
    for peer in [friend, driver] { #expect(try peer.answer(toSubscribing: "trip:T1") == "subscribed") }
    #expect(try stranger.answer(toSubscribing: "trip:T1") == "forbidden")
    try driver.sendFix(0, trip: "T1")
    for peer in [own, friend] { #expect(try peer.receive("driver_location").string("tripId") == "T1") }
    // A new token that does not name it changes nothing for who has part in it.
    try own.send("refresh", ["token": hub.token(.rider, "r1", trips: ["T9"])])
    #expect(try own.receive("ack").replyTo != nil)
    #expect(try own.settle().isEmpty)

    try post(ops, "T1", "cancelled")
    for peer in [own, friend, driver] {
      #expect(try peer.skip(to: "trip_update").string("status") == "cancelled")
      let end = try peer.receive("unsubscribed")
      #expect(end.string("reason") == "trip_ended" && end.replyTo == nil)
    }
    for peer in [friend, stranger] { #expect(try peer.answer(toSubscribing: "trip:T1") == "forbidden") }
    for peer in [own, driver] {
      let late = try peer.subscribe("trip:T1", since: 1, epoch: epoch)
      #expect(late.payload["recovered"] as? Bool == true && late.object("snapshot")?["position"] == nil)
      #expect(try peer.receive("trip_update").string("status") == "cancelled")
      #expect(try peer.receive("unsubscribed").string("reason") == "trip_ended")
    }
    try driver.sendFix(1, trip: "T1")
    for peer in [own, friend, driver] { #expect(try peer.settle().isEmpty) }
    try hub.hub.metrics { $0["subscriptions_ended_total{reason=\"trip_ended\"}"] == 5 }
  }

  @Test(
    "by development's word a driver follows a trip until another driver takes it; a token's word stands",
    arguments: loopCounts, [false, true])
  func claimed(loops: Int, isStored: Bool) throws {
    let directory = isStored ? try JournalDirectory() : nil
    let hub = try TokenHub(loops: loops) {
      $0.allowsDevelopmentCredentials = true
      $0.journal = directory.map { JournalConfiguration(directory: $0.path) }
    }
    let first = try hub.hub.driver("D1")
    let second = try hub.hub.driver("D2")
    let rider = try hub.hub.rider("r1")
    let third = try hub.join(hub.token(.driver, "D3", trips: ["T1"]))
    for peer in [first, second, rider, third] { #expect(try peer.answer(toSubscribing: "trip:T1") == "subscribed") }
    try first.sendFix(0, trip: "T1")
    let end = try second.receive("unsubscribed")
    #expect(end.string("channel") == "trip:T1" && end.string("reason") == "revoked" && end.replyTo == nil)
    for peer in [first, rider, third] {
      // A position does not wait for the disk, an event does.
      if isStored { _ = try peer.receive("driver_location") }
      #expect(try peer.receive("trip_update").string("driverId") == "D1")
      if !isStored { _ = try peer.receive("driver_location") }
    }
    #expect(try second.settle().isEmpty)
    #expect(try second.answer(toSubscribing: "trip:T1") == "forbidden")
    #expect(try third.answer(toSubscribing: "trip:T1") == "subscribed")
    try hub.hub.metrics { $0["subscriptions_ended_total{reason=\"revoked\"}"] == 1 }
  }

  @Test("a client with a source of tokens outlives each of them on one connection")
  func renews() throws {
    let hub = try TokenHub()
    let bench = try ClientBench()
    var configuration = ClientConfiguration(url: try HubURL("ws://127.0.0.1:\(hub.hub.port)"))
    let tokens = TokenList(try [8, 60, 600].map { try hub.token(.rider, "r1", lasts: $0) })
    let firstIsOver = ClientLoop.uptime + 9_000_000_000
    configuration.tokens = { _ in tokens.next() }
    configuration.limits.renewalPart = 0.9
    configuration.limits.jitter = 0
    let client = bench.clients.add(configuration)
    #expect(
      bench.run { bench.clients.session(client).counters.refreshes == 2 && ClientLoop.uptime > firstIsOver })
    #expect(bench.openings == [0: 1] && bench.closures.isEmpty)
    bench.clients.closeAll()
    #expect(bench.run { bench.clients.connections == 0 })
  }

  @Test("a client whose session is revoked comes back with another token, and without one it ends")
  func comesBack() throws {
    let hub = try TokenHub()
    let bench = try ClientBench()
    let url = try HubURL("ws://127.0.0.1:\(hub.hub.port)")
    let first = try hub.token(.rider, "r1", jti: "lost")
    let second = try hub.token(.rider, "r1", jti: "new")
    var configuration = ClientConfiguration(url: url, token: first)
    configuration.tokens = { $0 == .refused ? .token(second) : .none }
    bench.clients.add(configuration)
    bench.clients.add(ClientConfiguration(url: url, token: first))
    #expect(bench.run { bench.openings == [0: 1, 1: 1] })
    try hub.revoke("lost\n")
    #expect(bench.run { bench.openings == [0: 2, 1: 1] })
    #expect(bench.closures.map(\.cause) == [.closed(.init(4401)), .closed(.init(4401))])
    #expect(bench.closures.contains { $0.next == .ended(.needsToken) })
    bench.clients.closeAll()
    #expect(bench.run { bench.clients.connections == 0 })
  }

  @Test(
    "`watch --token-file` reads the file again when the hub refuses its token",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func tokenFile() throws {
    let hub = try TokenHub()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try Data(hub.token(.rider, "r1", trips: ["T1"], lasts: -60).utf8).write(to: file)
    defer { do { try FileManager.default.removeItem(at: file) } catch { Issue.record(error) } }
    let url = "ws://127.0.0.1:\(hub.hub.port)"
    let watch = try HubProcess(["watch", "trip:T1", "--url", url, "--token-file", file.path, "--count", "1"])
    try hub.hub.metrics { $0["handshakes_refused_total"] >= 1 }
    try Data("\n\(hub.token(.rider, "r1", trips: ["T1"]))\n".utf8).write(to: file, options: .atomic)
    try hub.hub.metrics { $0["subscriptions"] == 1 }
    try hub.join(hub.token(.driver, "D1", trips: ["T1"])).sendFix(0, trip: "T1")
    let outcome = try watch.outcome()
    #expect(outcome.status == 0 && outcome.errors.contains("401"), "\(outcome.errors)")

    let missing = ["watch", "trip:T1", "--url", url, "--token-file", file.path + "x"]
    #expect(try HubProcess.run(missing).status == 1)
    #expect(try HubProcess.run(missing + ["--token", "x"]).status == 2)
    try Data().write(to: file)
    let empty = try HubProcess.run(["watch", "trip:T1", "--url", url, "--token-file", file.path])
    #expect(empty.status == 1 && empty.errors.contains("has 0 tokens"))
    try Data("a\nb\n".utf8).write(to: file)
    let few = try HubProcess.run(["simulate", "--drivers", "3", "--url", url, "--token-file", file.path])
    #expect(few.status == 1 && few.errors.contains("3 are needed"))
    #expect(try HubProcess.run(["simulate", "--drivers", "3", "--url", url, "--token", "a"]).status == 2)
  }

  @Test(
    "`serve --grant-grace` says how long an ended trip is followed",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func option() throws {
    let hub = try HubProcess.serve(["--grant-grace", "0"])
    let rider = try Peer(port: hub.port, query: "role=rider&id=r1")
    _ = try rider.receive("connected")
    #expect(try rider.answer(toSubscribing: "trip:T1") == "subscribed")
    try post(rider, "T1", "requested")
    try post(rider, "T1", "cancelled")
    #expect(try rider.skip(to: "unsubscribed").string("reason") == "trip_ended")
    let friend = try Peer(port: hub.port, query: "role=rider&id=r2")
    _ = try friend.receive("connected")
    #expect(try friend.answer(toSubscribing: "trip:T1") == "forbidden")
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
    #expect(try HubProcess.run(["serve", "--grant-grace", "-1"]).status == 2)
  }
}
