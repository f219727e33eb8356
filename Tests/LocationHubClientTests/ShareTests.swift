// Links to a trip, made by the client and followed by another one.
import Foundation
import FoundationNetworking
import HubBytes
import HubGateway
import HubMessages
import HubSystem
import HubTokens
import HubTransport
import LocationHubClient
import Testing

@Suite(.timeLimit(.minutes(5))) struct ShareTests {
  private let keys: KeySet

  init() throws { keys = try KeySet(parsing: Array("0123456789abcdef0123456789abcdef\n".utf8)) }

  /// A hub that signs with its own key, and a trip of r1's.
  private func hub() async throws -> TestHub {
    let hub = try TestHub {
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
      $0.tokenSigner = keys.keys[0]
    }
    try await addTrip(to: hub)
    return hub
  }

  private func addTrip(to hub: TestHub) async throws {
    let url = try #require(URL(string: "http://127.0.0.1:\(hub.port)/v1/trips?role=ops&id=o1"))
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.httpBody = Data(#"{"tripId":"T1","driverId":"d1","riderId":"r1"}"#.utf8)
    let (_, response) = try await URLSession.shared.data(for: request)
    try #require((response as? HTTPURLResponse)?.statusCode == 201)
  }

  private func token(_ id: Identifier) throws -> String {
    let end = Timestamp(milliseconds: Timestamp.now.milliseconds + 3_600_000)
    let claims = Claims(subject: id, role: .rider, expires: end, grants: nil)
    return String(decoding: try keys.keys[0].token(TokenRequest(claims: claims)), as: UTF8.self)
  }

  private func live(_ hub: TestHub, _ tokens: TokenSource, query: String = "") async throws -> RiderHub {
    var options = HubOptions()
    options.codec = .json
    let rider = try RiderHub("ws://127.0.0.1:\(hub.port)/v1/ws\(query)", tokens: tokens, options: options)
    rider.start()
    for await state in rider.connection {
      if case .stopped(let error) = state { throw error }
      if state.isLive { break }
    }
    return rider
  }

  @Test("who has the link follows the trip, with a token or with development's word", arguments: [true, false])
  func follows(hasToken: Bool) async throws {
    let hub = try await hub()
    let rider = try await live(hub, hasToken ? .fixed(token("r1")) : .development(.rider, "r1"), query: "?time=rfc3339")
    let until = Timestamp(milliseconds: Timestamp.now.milliseconds + 600_000)
    let share = try await rider.share("T1", until: until)
    #expect(share.expires == until)
    #expect(share.url == "http://127.0.0.1:\(hub.port)/track/T1#token=\(share.token)")
    let friend = try await live(hub, .fixed(share.token))
    for await event in friend.trip("T1") {
      guard case .snapshot(let snapshot) = event else { continue }
      #expect(snapshot.trip?.tripID == "T1")
      break
    }
    await friend.stop()
    await rider.stop()
  }

  @Test("a link that is taken back ends what is seen by it, and a second time there is none")
  func revoked() async throws {
    let hub = try await hub()
    let rider = try await live(hub, .fixed(token("r1")))
    let share = try await rider.share("T1")
    let friend = try await live(hub, .fixed(share.token))
    var events = friend.trip("T1").makeAsyncIterator()
    guard case .snapshot? = await events.next() else { return #expect(Bool(false)) }
    let stranger = try await live(hub, .fixed(token("r2")))
    do throws(HubError) {
      try await stranger.revoke(share.id, of: "T1")
      Issue.record("it is not hers")
    } catch { #expect(error.code == .hub(.forbidden)) }
    try await rider.revoke(share.id, of: "T1")
    #expect(await events.next() == .ended(.revoked))
    do throws(HubError) {
      try await rider.revoke(share.id, of: "T1")
      Issue.record("it is gone")
    } catch { #expect(error.code == .hub(.notFound)) }
    for client in [friend, stranger, rider] { await client.stop() }
  }

  @Test("who may not, may not yet, or asks a hub that cannot, gets an error")
  func refused() async throws {
    let hub = try await hub()
    let stranger = try await live(hub, .fixed(token("r2")))
    await #expect(throws: HubError.self) { try await stranger.share("T1") }
    do throws(HubError) { _ = try await stranger.share("T1") } catch {
      #expect(error.code == .hub(.forbidden) && error.retry == .never)
    }
    let early = try RiderHub("ws://127.0.0.1:\(hub.port)", tokens: .fixed(token("r1")))
    do throws(HubError) { _ = try await early.share("T1") } catch {
      #expect(error.code == .token && error.retry == .later(after: nil))
    }
    let past = try await live(hub, .fixed(token("r1")))
    do throws(HubError) { _ = try await past.share("T1", until: Timestamp(milliseconds: 1_700_000_000_000)) } catch {
      #expect(error.code == .hub(.badMessage))
    }
    let unsigned = try TestHub()
    try await addTrip(to: unsigned)
    let rider = try await live(unsigned, .development(.rider, "r1"))
    do throws(HubError) { _ = try await rider.share("T1") } catch { #expect(error.code == .hub(.notFound)) }
    let nowhere = try RiderHub("ws://127.0.0.1:9", tokens: .development(.rider, "r1"))
    do throws(HubError) { _ = try await nowhere.share("T1") } catch {
      #expect(error.code == .unreachable && error.explanation.contains("127.0.0.1"))
    }
    let far = try RiderHub("ws://127.0.0.1:9/v1/ws?time=rfc3339", tokens: .development(.rider, "r1"))
    do throws(HubError) { _ = try await far.share("T1", until: Timestamp(milliseconds: .max)) } catch {
      #expect(error.code == .unreachable)
    }
    for client in [stranger, past, rider] { await client.stop() }
  }

  @Test(
    "what answers instead of a hub is named, and nothing waits for it",
    arguments: [
      (nil, "no answer within"),
      ("HTTP/1.1 201 Created\r\nContent-Length: 99999\r\n\r\n", "answers more"),
      ("HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n", "no answer within"),
      ("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", "something else"),
      ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\noops", "HTTP 502"),
      ("SSH-2.0-OpenSSH\r\n\r\n", "no HTTP"),
    ])
  func others(answer: String?, expected: String) async throws {
    let server = try OneAnswer(answer)
    var options = HubOptions()
    options.limits.handshakeSeconds = expected == "no answer within" ? 0.3 : 30
    let rider = try RiderHub(
      "ws://127.0.0.1:\(server.port)", tokens: .development(.rider, "r1"), options: options)
    do throws(HubError) {
      _ = try await rider.share("T1")
      Issue.record("that was no share")
    } catch {
      #expect(error.explanation.contains(expected), "\(error)")
    }
  }
}

/// Says the same to whoever says anything, on a thread of its own, until it is let go.
private final class OneAnswer: Sendable {
  let port: UInt16
  private let waker: Waker

  init(_ answer: String?) throws { (port, waker) = try OneAnswer.start(answer) }

  deinit { waker.wake() }

  private static func start(_ answer: String?) throws -> (UInt16, Waker) {
    let loop = try EventLoop()
    let port = try loop.listen(try #require(SocketAddress(host: "127.0.0.1", port: 0))).port
    let waker = loop.waker
    _ = try startThread(name: "one-answer") {
      let speaker = Speaker(loop, answer)
      loop.delegate = speaker
      loop.run()
    }
    return (port, waker)
  }

  private final class Speaker: EventLoopDelegate {
    private let loop: EventLoop
    private let answer: String?
    init(_ loop: EventLoop, _ answer: String?) { (self.loop, self.answer) = (loop, answer) }
    func connected(_ id: ConnectionID) {}
    func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
      guard let answer else { return }
      let start = loop.arena.count
      loop.arena.append(Array(answer.utf8))
      loop.send(start..<loop.arena.count, to: id)
    }
    func overflowed(_ id: ConnectionID) {}
    func closed(_ id: ConnectionID, _ cause: CloseCause) {}
    func woken() { loop.stop() }
  }
}
