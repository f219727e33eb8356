// The table of endpoints, and handlers without a loop: a request in, an outcome out.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import Testing

@testable import HubGateway

@Suite struct RoutesTests {
  private let context: HTTPContext

  init() {
    var configuration = ServerConfiguration()
    configuration.allowsDevelopmentCredentials = true
    let timestamp = Timestamp(milliseconds: 1_763_680_000_000)
    context = HTTPContext(
      settings: HTTPSettings(configuration, SharedState(configuration: configuration), MessageReader()),
      now: Moment(uptime: 0, timestamp: timestamp), session: SessionRef(outlet: 0, slot: 0, generation: 0),
      phase: .serving,
      credentials: CredentialCheck(
        access: nil, generation: 0, developmentHosts: configuration.hosts,
        certificates: configuration.clientCertificates, now: timestamp),
      compression: nil)
  }

  /// Reads a request as a connection does.
  private func request(
    _ text: String, body: String = "", fields: String = "", byAdminPort: Bool = false
  ) throws -> HTTPRequest {
    let peer = HTTPPeer(
      address: try #require(SocketAddress(host: "127.0.0.1", port: 1)), isAdmin: byAdminPort, isProxy: false)
    let exchange = Exchange(.none, from: peer, deadline: 0)
    let head = "\(text) HTTP/1.1\r\nHost: localhost\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n"
    let bytes = Array((head + body).utf8)
    // Byte by byte, as the slowest network has it.
    for (index, byte) in bytes.enumerated() {
      exchange.input.append(byte)
      while case .reading = exchange.state {
        let progress = try Routes.read(exchange, context)
        if case .incomplete = progress { break }
        if case .head(let request, let limits, _) = progress { try exchange.beginBody(of: request, limits: limits) }
        guard case .complete(let request) = progress else { continue }
        #expect(index == bytes.count - 1)
        return request
      }
    }
    throw HTTPError.malformedStartLine
  }

  private func outcome(_ text: String, body: String = "", byAdminPort: Bool = false) throws -> Outcome {
    try Routes.outcome(of: request(text, body: body, byAdminPort: byAdminPort), context)
  }

  private func refusal(_ text: String, body: String = "", byAdminPort: Bool = false) throws -> Refusal? {
    do {
      _ = try outcome(text, body: body, byAdminPort: byAdminPort)
      return nil
    } catch let refusal as Refusal {
      return refusal
    }
  }

  @Test("no endpoint has more segments than a path is taken apart into, and a longer path has none")
  func longPaths() throws {
    #expect(Routes.all.allSatisfy { $0.path.count <= HTTPLimits.pathSegments })
    #expect(try refusal("GET /v1/trips/a/b/c/d/e/f/g/h/i/j")?.status == .notFound)
  }

  @Test(
    "what an endpoint does not do is 405, with what it does",
    arguments: [
      ("DELETE /healthz", "GET, HEAD"), ("GET /v1/locations", "POST"), ("PUT /v1/drivers/within", "GET, HEAD, POST"),
      ("DELETE /v1/drivers/d", "GET, HEAD"), ("PATCH /v1/trips", "GET, HEAD, POST"),
      ("DELETE /v1/trips/t", "GET, HEAD, PATCH"), ("POST /v1/trips/t/track.gpx", "GET, HEAD"),
      ("POST /v1/fences", "GET, HEAD"), ("POST /v1/fences/f", "GET, HEAD, PUT, DELETE"),
      ("OPTIONS /v1/notifications", "POST"), ("POST /v1/events", "GET"), ("HEAD /v1/events", "GET"),
    ])
  func methods(request: String, allowed: String) throws {
    let refusal = try #require(try refusal(request))
    #expect(refusal.status == .methodNotAllowed && refusal.message == "allowed here: \(allowed)")
    #expect(refusal.fields.map(\.value) == [allowed])
  }

  @Test(
    "there is nothing at other paths",
    arguments: [
      "/v1", "/v1/driver", "/v1/drivers/a/b", "/v1/trips/t/track.pdf", "/v1/trips//x", "/v2/ws", "/nothing.js", "//",
    ])
  func unknown(path: String) throws {
    #expect(try refusal("GET \(path)")?.status == .notFound)
  }

  @Test(
    "a time that is not well encoded is refused like one that is unknown",
    arguments: ["/v1/trips", "/v1/drivers/d", "/v1/gtfs-realtime/vehicle-positions"])
  func times(path: String) throws {
    for (time, message) in [("rfc3339%", "not well encoded"), ("%FF", "not well encoded"), ("unix", "must be")] {
      let refusal = try #require(try refusal("GET \(path)?time=\(time)&role=ops&id=o"))
      #expect(refusal.status == .badRequest && refusal.code == .badMessage && refusal.message.contains(message))
    }
    #expect(try refusal("GET \(path)?time=rfc%33339&role=ops&id=o") == nil)
  }

  @Test("the admin port has what is for operators, and nothing else")
  func adminPort() throws {
    for path in ["/healthz", "/readyz", "/metrics"] { #expect(try refusal("GET \(path)", byAdminPort: true) == nil) }
    for path in ["/v1/ws", "/v1/trips", "/v1/drivers/d"] {
      #expect(try refusal("GET \(path)?role=ops&id=o", byAdminPort: true)?.status == .notFound)
    }
  }

  @Test("a page of another origin has no development credentials, although a browser sends no Origin with its images")
  func otherOrigins() throws {
    let target = "GET /v1/osmand?role=driver&id=d&lat=48.1&lon=11.5&timestamp=1763680000"
    for site in ["cross-site", "same-site", "same-origin", "none"] {
      let request = try request(target, fields: "Sec-Fetch-Site: \(site)\r\n")
      var status: Status?
      do throws(Refusal) { _ = try Routes.outcome(of: request, context) } catch { status = error.status }
      #expect(status == (site.hasSuffix("-site") ? .unauthorized : nil), "\(site)")
    }
    let request = try request(target)
    #expect(request.isReadOnly)
    _ = try Routes.outcome(of: request, context)
    #expect(!request.isReadOnly, "it records a fix")
  }

  @Test("of a list that the journal continues, the hub's part leaves out those that the journal lists")
  func knownAndInJournal() throws {
    let request = try request("GET /v1/trips?role=ops&id=o&since=1")
    let (now, forgottenBy) = (context.now.timestamp, context.forgottenBy.milliseconds)
    func trip(_ id: String, ended: Int64?) throws -> TripReport {
      var trip = TripReport(
        tripID: try #require(Identifier(id)), status: .cancelled, timestamp: now, created: now, updated: now)
      trip.ended = ended.map { Timestamp(milliseconds: $0) }
      return trip
    }
    var page = TripPage(trips: [
      try trip("active", ended: nil), try trip("known", ended: forgottenBy + 1), try trip("both", ended: forgottenBy),
    ])
    func answer() throws -> Outcome {
      try TripEndpoints.answer(.list(page), request, .trips(inJournal: TripListQuery(limit: 10)), context)
    }
    guard case .consult(.history(.trips(let query, _, let known, _))) = try answer() else {
      Issue.record("the journal continues it")
      return
    }
    #expect(known.map { "\($0.tripID)" } == ["active", "known"] && query.limit == 8)
    page.next = ListCursor(7)
    guard case .respond(let response, _) = try answer() else {
      Issue.record("the hub has more")
      return
    }
    let text = String(decoding: response.body, as: UTF8.self)
    #expect(
      text.contains("known") && !text.contains("both") && text.contains(#""next":"\#(ListCursor(7).text(of: .trips))""#)
    )
  }

  @Test("a stream whose channels were checked when a drain began does not begin")
  func drain() throws {
    let credential = Credential(role: .rider, id: try #require(Identifier("r")))
    try context.admit(EventStream([], nil), of: credential)
    let draining = HTTPContext(
      settings: context.settings, now: context.now, session: context.session, phase: .draining,
      credentials: context.credentials, compression: nil)
    do throws(Refusal) {
      try draining.admit(EventStream([], nil), of: credential)
      Issue.record("nobody would end it")
    } catch { #expect(error.code == .shuttingDown) }
  }

  @Test("a question is put to the hub with the rights of who asks")
  func questions() throws {
    guard case .query(.driver(let id), .hub) = try outcome("GET /v1/drivers/d%31?role=ops&id=o") else {
      Issue.record("not asked")
      return
    }
    #expect(id == Identifier("d1"))
    #expect(try refusal("POST /v1/trips?role=driver&id=d", body: "{}")?.status == .forbidden)
    #expect(try refusal("GET /v1/fences?role=rider&id=r")?.message == "only ops may see and change fences")
    #expect(try refusal("GET /v1/trips/t")?.status == .unauthorized)
    #expect(try refusal("GET /v1/trips/t?role=ops&id=o&since=1")?.status == .badRequest)
    guard case .ask(let inputs, .hub) = try outcome("DELETE /v1/fences/f?role=ops&id=o"), inputs.count == 1,
      case .fences(_, .delete(Identifier("f")!)) = inputs[0]
    else {
      Issue.record("not asked")
      return
    }
  }

  @Test("a body is read at its full size where one is taken, from who has a credential")
  func bodies() throws {
    func isWanted(_ text: String) throws -> Bool { Routes.wantsBody(of: try request(text, body: "x"), context) }
    for target in ["POST /v1/locations", "PUT /v1/fences/f", "PATCH /v1/trips/t", "POST /v1/drivers/within"] {
      #expect(try isWanted("\(target)?role=ops&id=o"))
      #expect(try !isWanted("\(target)?role=nobody&id=o"))
    }
    for target in ["GET /v1/trips", "DELETE /v1/fences/f", "POST /v1/nothing", "POST /healthz", "PUT /v1/trips/t"] {
      #expect(try !isWanted("\(target)?role=ops&id=o"))
    }
  }

  @Test("a request is charged for what its body holds, beyond its bytes")
  func work() throws {
    let fix = #"{"latitude":1,"longitude":1,"timestamp":1763680000000}"#
    let body = #"{"locations":[\#(Array(repeating: fix, count: 100).joined(separator: ","))]}"#
    let request = try request("POST /v1/locations?role=driver&id=d", body: body)
    _ = try Routes.outcome(of: request, context)
    let work = request.takeWork()
    #expect(work.units == max(100 / 50, body.utf8.count / 4096) - body.utf8.count / 4096)
    #expect(work.credentialChecks == 1 && request.takeWork().credentialChecks == 0)
  }
}
