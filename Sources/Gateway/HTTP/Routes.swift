// Every endpoint of HTTP. A further one is a row here and its handler; what it needs from the hub is a case of
// `HubInput`, and how the hub's word becomes the answer stands in HubAnswer.swift.
//
// Path matching, `Allow`, the query's parameters, which bodies are read at full size, who may ask and the CORS
// preflight all follow from the row.
import HubHTTP
import HubMessages
import HubRuntime

enum Routes {
  private static let filter: [StaticString] = ["limit", "status", "vehicleType", "tags", "maxAge", "stale"]

  /// Where two match, the first counts.
  static let all: [HTTPRoute] =
    [
      HTTPRoute("/v1/ws", takesAnyMethod: true, [.open(.get, UpgradeEndpoint.upgrade)]),
      HTTPRoute("/healthz", isForOperators: true, [.open(.get) { _, _ in .respond(.text("ok\n")) }]),
      HTTPRoute("/readyz", isForOperators: true, [.open(.get, readiness)]),
      HTTPRoute("/metrics", isForOperators: true, [.open(.get, metrics)]),
      HTTPRoute("/v1/locations", [.on(.post, only: .driver, "only a driver sends locations", LocationEndpoint.post)]),
      HTTPRoute(
        "/v1/drivers/nearby", parameters: ["latitude", "longitude", "radius"] + filter,
        [.on(.get, DriverEndpoints.nearby)]),
      HTTPRoute(
        "/v1/drivers/within", parameters: ["bbox"] + filter,
        [.on(.get, DriverEndpoints.withinBox), .on(.post, DriverEndpoints.withinPolygons)]),
      HTTPRoute("/v1/drivers/{id}", [.on(.get, DriverEndpoints.show)]),
      HTTPRoute(
        "/v1/trips", parameters: ["status", "driver", "since", "limit", "cursor"],
        [
          .on(.get, only: .ops, "only ops may list trips", TripEndpoints.list),
          .on(.post, only: .ops, "only ops may do this; others send trip_status", TripEndpoints.begin),
        ]),
      HTTPRoute("/v1/trips/{id}", [.on(.get, TripEndpoints.show), .on(.patch, TripEndpoints.change)]),
      HTTPRoute(
        "/v1/fences", parameters: ["limit", "cursor"],
        [.on(.get, only: .ops, FenceEndpoints.opsOnly, FenceEndpoints.list)]),
      HTTPRoute(
        "/v1/fences/{id}",
        [
          .on(.get, only: .ops, FenceEndpoints.opsOnly, FenceEndpoints.show),
          .on(.put, only: .ops, FenceEndpoints.opsOnly, FenceEndpoints.put),
          .on(.delete, only: .ops, FenceEndpoints.opsOnly, FenceEndpoints.delete),
        ]),
      HTTPRoute(
        "/v1/notifications",
        [.on(.post, only: .ops, "only ops may post notifications", NotificationEndpoint.post)]),
    ] + ([nil] + TrackFormat.allCases).map(track)

  /// `format`: the one that the path's suffix names; nil for what `Accept` says.
  private static func track(_ format: TrackFormat?) -> HTTPRoute {
    HTTPRoute(
      "/v1/trips/{id}/track" + (format.map { ".\($0.rawValue)" } ?? ""), parameters: ["source", "tolerance"],
      [.on(.get) { (call) throws(Refusal) in try TrackEndpoint.show(call, format) }])
  }

  private static func readiness(_ request: HTTPRequest, _ context: HTTPContext) throws(Refusal) -> Outcome {
    switch context.phase {
    case .serving: return .respond(.text("ready\n"))
    case .unready, .draining: throw Refusal(.shuttingDown, "the hub is shutting down")
    }
  }

  private static func metrics(_ request: HTTPRequest, _ context: HTTPContext) throws(Refusal) -> Outcome {
    try context.admitOperator(request)
    return .metrics
  }

  // MARK: From a request to its outcome

  /// Whether a body is read at its full size: for an endpoint that takes one, from someone who may use it. 20,000
  /// strangers may not make the hub keep 256 KiB of each.
  static func wantsBody(of request: HTTPRequest, _ context: HTTPContext) -> Bool {
    do throws(HTTPError) {
      guard let (route, _) = find(try request.path.get()), route.action(for: request.head.method)?.takesBody == true
      else { return false }
    } catch {
      return false
    }
    do throws(CredentialError) {
      _ = try request.credential(by: context.credentials)
      return true
    } catch {
      return false
    }
  }

  /// Has a request handled that is complete.
  static func outcome(of request: HTTPRequest, _ context: HTTPContext) throws(Refusal) -> Outcome {
    let (route, parameters) = try route(of: request)
    if request.isPreflight { return .respond(preflight(route)) }
    guard let action = route.action(for: request.head.method) else {
      var refusal = Refusal(.badMessage, "allowed here: \(route.allowedMethods)", status: .methodNotAllowed)
      refusal.fields = [OutgoingField("Allow", route.allowedMethods)]
      throw refusal
    }
    switch action.handler {
    case .open(let handler): return try handler(request, context)
    case .known(let rule, let handler):
      let caller = try request.caller(by: context.credentials)
      guard let time = TimeFormat(queryValue: request.head.query.text("time")) else {
        throw Refusal(.badMessage, TimeFormat.queryHelp)
      }
      request.time = time
      if let fault = request.head.query.fault(knowing: route.parameters) { throw Refusal(.badMessage, "\(fault)") }
      if let rule, caller.role != rule.role { throw Refusal(.forbidden, "\(rule.otherwise)") }
      return try handler(HTTPCall(request: request, caller: caller, parameters: parameters, context: context))
    }
  }

  private static func route(of request: HTTPRequest) throws(Refusal) -> (HTTPRoute, [String]) {
    let found: (HTTPRoute, [String])?
    do throws(HTTPError) { found = find(try request.path.get()) } catch { throw Refusal(error) }
    guard let found else { throw Refusal(.notFound, "there is no such endpoint") }
    guard !request.peer.isAdmin || found.0.isForOperators else {
      throw Refusal(.notFound, "the admin port has /healthz, /readyz and /metrics only")
    }
    return found
  }

  private static func find(_ path: [String]) -> (HTTPRoute, [String])? {
    for route in all {
      if let parameters = route.match(path) { return (route, parameters) }
    }
    return nil
  }

  private static func preflight(_ route: HTTPRoute) -> Response {
    Response(
      .noContent,
      fields: [
        OutgoingField("Access-Control-Allow-Methods", route.allowedMethods),
        OutgoingField("Access-Control-Allow-Headers", "Authorization, Content-Type"),
        OutgoingField("Access-Control-Max-Age", "3600"),
      ])
  }
}
