// All endpoints of HTTP. A new one is a row here and its handler; what it needs from the hub is a case of `HubInput`,
// whose answer is in HubAnswer.swift.
//
// Path matching, `Allow`, the query's parameters, the size of bodies, rights and the CORS preflight all follow from the
// row.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime

enum Routes {
  private static let filter: [StaticString] = ["limit", "status", "vehicleType", "tags", "maxAge", "stale"]

  /// The first match counts.
  static let all: [HTTPRoute] =
    [
      HTTPRoute("/v1/ws", takesAnyMethod: true, .on(.get, for: .open, UpgradeEndpoint.upgrade)),
      HTTPRoute("/healthz", isForOperators: true, .on(.get, for: .open, health)),
      HTTPRoute("/readyz", isForOperators: true, .on(.get, for: .open, readiness)),
      HTTPRoute("/metrics", isForOperators: true, .on(.get, for: .open, metrics)),
      HTTPRoute(
        "/v1/locations",
        .on(.post, for: phone, parameters: ["trip"], DriverEndpoints.locate)),
      HTTPRoute(
        "/v1/events", isStream: true,
        .on(.get, parameters: ["lastEventId", "eventsOnly"], repeatable: ["channel"], EventStreamEndpoint.open)),
      HTTPRoute("/v1/owntracks", isForPhones: true, .on(.post, for: phone, PhoneEndpoints.ownTracks)),
      HTTPRoute(
        "/v1/osmand", isForPhones: true, .on(.get, for: phone, PhoneEndpoints.osmAnd),
        .on(.post, for: phone, PhoneEndpoints.osmAnd)),
      HTTPRoute("/v1/overland", isForPhones: true, .on(.post, for: phone, PhoneEndpoints.overland)),
      HTTPRoute("/v1/messages", .on(.post, MessageEndpoint.post)),
      HTTPRoute(
        "/v1/drivers/nearby",
        .on(.get, parameters: ["latitude", "longitude", "radius"] + filter, DriverEndpoints.nearby)),
      HTTPRoute(
        "/v1/drivers/within", .on(.get, parameters: ["bbox"] + filter, DriverEndpoints.withinBox),
        .on(.post, parameters: filter, DriverEndpoints.withinPolygons)),
      HTTPRoute(
        "/v1/drivers",
        .on(
          .get, for: .only(.ops, otherwise: "only ops may list drivers"),
          parameters: ["search", "status", "limit", "cursor"], DriverEndpoints.list)),
      HTTPRoute("/v1/drivers/{id}/status", .on(.put, DriverEndpoints.setStatus)),
      HTTPRoute("/v1/drivers/{id}", .on(.get, DriverEndpoints.show)),
      HTTPRoute(
        "/v1/trips",
        .on(
          .get, for: .only(.ops, otherwise: "only ops may list trips"),
          parameters: ["status", "driver", "since", "limit", "cursor"], TripEndpoints.list),
        .on(
          .post, for: .only(.ops, otherwise: "only ops may do this; others send trip_status"), TripEndpoints.begin)),
      HTTPRoute(
        "/v1/trips/{id}/shares", .on(.get, ShareEndpoints.list), .on(.post, ShareEndpoints.begin)),
      HTTPRoute("/v1/trips/{id}/shares/{id}", .on(.delete, ShareEndpoints.end)),
      HTTPRoute(
        "/v1/trips/{id}/offers", .on(.get, for: offerAccess, OfferEndpoints.show),
        .on(.post, for: offerAccess, OfferEndpoints.begin), .on(.delete, for: offerAccess, OfferEndpoints.stop)),
      HTTPRoute("/v1/trips/{id}/status", .on(.post, TripEndpoints.move)),
      HTTPRoute("/v1/trips/{id}", .on(.get, TripEndpoints.show), .on(.patch, TripEndpoints.change)),
      HTTPRoute(
        "/v1/fences", .on(.get, for: fenceAccess, parameters: ["limit", "cursor", "shape"], FenceEndpoints.list)),
      HTTPRoute(
        "/v1/fences/{id}", .on(.get, for: fenceAccess, FenceEndpoints.show),
        .on(.put, for: fenceAccess, FenceEndpoints.put),
        .on(.delete, for: fenceAccess, FenceEndpoints.delete)),
      HTTPRoute(
        "/v1/sessions",
        .on(
          .get, for: .only(.ops, otherwise: "only ops may see who has sessions"), parameters: ["sub"],
          SessionEndpoint.show)),
      HTTPRoute(
        "/v1/tokens",
        .on(.get, for: tokenAccess, as: .listTokens, parameters: ["sub"], TokenEndpoints.list),
        .on(.post, for: tokenAccess, as: .issueTokens, TokenEndpoints.begin),
        .on(.delete, for: tokenAccess, as: .endTokens, parameters: ["sub"], TokenEndpoints.end)),
      HTTPRoute("/v1/tokens/refresh", .on(.post, for: .open, as: .refreshTokens, TokenEndpoints.refresh)),
      HTTPRoute(
        "/v1/revocations",
        .on(
          .get, for: tokenAccess, as: .listRevocations, parameters: ["limit", "cursor"], RevocationEndpoints.list),
        .on(.post, for: tokenAccess, as: .revoke, RevocationEndpoints.begin),
        .on(.delete, for: tokenAccess, as: .unrevoke, parameters: ["sub", "jti"], RevocationEndpoints.end)),
      HTTPRoute("/v1/webhooks", .on(.get, for: webhookAccess, WebhookEndpoints.list)),
      HTTPRoute(
        "/v1/webhooks/{id}", .on(.get, for: webhookAccess, WebhookEndpoints.show),
        .on(.put, for: webhookAccess, WebhookEndpoints.put), .on(.delete, for: webhookAccess, WebhookEndpoints.delete)),
      HTTPRoute(
        "/v1/webhooks/{id}/dead", .on(.get, for: webhookAccess, parameters: ["limit"], WebhookEndpoints.dead)),
      HTTPRoute("/v1/webhooks/{id}/enable", .on(.post, for: webhookAccess, WebhookEndpoints.enable)),
      HTTPRoute("/v1/webhooks/{id}/replay", .on(.post, for: webhookAccess, WebhookEndpoints.replay)),
      HTTPRoute("/v1/webhooks/{id}/test", .on(.post, for: webhookAccess, WebhookEndpoints.test)),
      HTTPRoute("/v1/webhooks/{id}/secret", .on(.post, for: webhookAccess, WebhookEndpoints.rotateSecret)),
      HTTPRoute("/v1/gtfs-realtime/vehicle-positions", .on(.get, for: .open, VehicleFeedEndpoint.show)),
      HTTPRoute(
        "/v1/notifications",
        .on(.post, for: .only(.ops, otherwise: "only ops may post notifications"), NotificationEndpoint.post)),
    ] + ([nil] + TrackFormat.allCases).map(track) + PageEndpoints.routes

  private static let phone = HTTPRoute.Access.only(.driver, otherwise: "only a driver sends locations")
  private static let tokenAccess = HTTPRoute.Access.only(.ops, otherwise: "only ops may make, see and revoke tokens")
  private static let webhookAccess = HTTPRoute.Access.only(.ops, otherwise: "only ops may see and set webhooks")
  private static let offerAccess = HTTPRoute.Access.only(
    .ops, otherwise: "only ops may have trips offered; a rider's trip_status has offer")
  private static let fenceAccess = HTTPRoute.Access.only(.ops, otherwise: "only ops may see and change fences")

  /// `format`: that of the path's suffix; nil for `Accept`.
  private static func track(_ format: TrackFormat?) -> HTTPRoute {
    HTTPRoute(
      "/v1/trips/{id}/track" + (format.map { ".\($0.rawValue)" } ?? ""),
      .on(.get, parameters: ["source", "tolerance"]) { (call) throws(Refusal) in try TrackEndpoint.show(call, format) })
  }

  private static func health(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let (context, ticks) = (call.context, call.context.settings.shared.ticks)
    if let (loop, seconds) = ticks.hanging(at: context.now.uptime, asker: Int(context.session.outlet)) {
      throw Refusal(
        .internalError, "event loop \(loop) has not turned for \(seconds) s", status: .serviceUnavailable)
    }
    return .respond(.text("ok\n"))
  }

  private static func readiness(_ call: HTTPCall) throws(Refusal) -> Outcome {
    guard call.context.phase == .serving else { throw Refusal(.shuttingDown, "the hub is shutting down") }
    // For load balancers, which then avoid an isolated hub while there is another (protocol/cluster.md).
    if call.query.text("engine") != nil, let reason = call.context.settings.shared.metrics.isolation {
      throw Refusal(.internalError, "\(reason)", status: .serviceUnavailable)
    }
    return .respond(.text("ready\n"))
  }

  private static func metrics(_ call: HTTPCall) throws(Refusal) -> Outcome {
    try call.context.admitOperator(call.request)
    return .metrics
  }

  // MARK: From bytes to an outcome

  /// The result of reading.
  enum Progress {
    case incomplete
    /// The head is complete: begin the body with these limits. `isHeldBack` where the client expects 100-continue (RFC
    /// 9110 §10.1.1).
    case head(HTTPRequest, HTTPLimits, isHeldBack: Bool)
    case complete(HTTPRequest)
  }

  /// Reads a connection's next request, step by step.
  static func read(_ exchange: Exchange, _ context: HTTPContext) throws(HTTPError) -> Progress {
    let settings = context.settings
    guard let head = try exchange.readHead(limits: settings.headLimits) else {
      return try exchange.readBody().map { .complete($0) } ?? .incomplete
    }
    let request = HTTPRequest(head, from: exchange.peer, origins: context.configuration.origins)
    if case .success(let path) = request.path, let route = find(path)?.route {
      request.isOfPhone = route.isForPhones
      request.family = route.family
      request.audit = route.action(for: head.method)?.audit
    }
    let isAdmitted = context.admitsHead(of: request)
    // A proxy's connection is shared by others: a small body is read before the refusal, so that it can go on.
    if !isAdmitted, !request.peer.isProxy || !head.framing.isAtMost(settings.unwantedBodyLimits.bodyBytes) {
      request.keepsConnection = false
      return .complete(request)
    }
    let isWanted = isAdmitted && wantsBody(of: request, context)
    let isHeldBack = head.expectsContinue && exchange.input.isEmpty
    if isHeldBack, !isWanted, !isOpen(request) {
      // Answered without the body, which is not read if it comes all the same.
      request.keepsConnection = false
      return .complete(request)
    }
    return .head(request, isWanted ? settings.headLimits : settings.unwantedBodyLimits, isHeldBack: isHeldBack)
  }

  /// Whether a small body is accepted from everybody, since it has the credential.
  private static func isOpen(_ request: HTTPRequest) -> Bool {
    guard request.head.framing != .none, case .success(let path) = request.path,
      let action = find(path)?.route.action(for: request.head.method), action.takesBody, case .open = action.access
    else { return false }
    return true
  }

  /// Whether the full body is read: for an endpoint with one, from a caller with the right to it. Else 20,000 strangers
  /// could make the hub keep 256 KiB of each.
  static func wantsBody(of request: HTTPRequest, _ context: HTTPContext) -> Bool {
    guard request.head.framing != .none, case .success(let path) = request.path,
      find(path)?.route.action(for: request.head.method)?.takesBody == true
    else { return false }
    do throws(CredentialError) { _ = try request.credential(by: context.credentials) } catch { return false }
    return true
  }

  /// Handles a complete request.
  static func outcome(of request: HTTPRequest, _ context: HTTPContext) throws(Refusal) -> Outcome {
    let path: [String]
    do throws(HTTPError) { path = try request.path.get() } catch { throw Refusal(error) }
    guard let (route, parameters) = find(path) else { throw Refusal(.notFound, "there is no such endpoint") }
    guard !request.peer.isAdmin || route.isForOperators else {
      throw Refusal(.notFound, "the admin port has /healthz, /readyz and /metrics only")
    }
    if request.isPreflight { return .respond(preflight(route)) }
    guard let action = route.action(for: request.head.method) else {
      throw Refusal(
        .badMessage, "allowed here: \(route.allowedMethods)", status: .methodNotAllowed,
        fields: [OutgoingField("Allow", route.allowedMethods)])
    }
    let call = HTTPCall(request: request, parameters: parameters, context: context)
    switch action.access {
    case .open: break
    case .known: try admit(call, action)
    case .only(let role, let otherwise):
      guard try admit(call, action).role == role else { throw Refusal(.forbidden, "\(otherwise)") }
    }
    return try action.handler(call)
  }

  /// Checks the credential and the parameters of all queries.
  @discardableResult
  private static func admit(_ call: HTTPCall, _ action: HTTPRoute.Action) throws(Refusal) -> Credential {
    let caller = try call.caller()
    if call.request.isOfPhone { return caller }
    call.request.time = try TimeFormat(call.query)
    if let fault = call.query.fault(knowing: action.parameters, repeatableFrom: action.firstRepeatable) {
      throw Refusal(.badMessage, "\(fault)")
    }
    return caller
  }

  /// Whether pages of all origins may read what is asked for.
  static func isForAllOrigins(_ request: HTTPRequest) -> Bool {
    guard case .success(let path) = request.path else { return false }
    return find(path)?.route.isForAllOrigins == true
  }

  private static func find(_ path: [String]) -> (route: HTTPRoute, parameters: [String])? {
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
        OutgoingField("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"),
        OutgoingField("Access-Control-Max-Age", "3600"),
      ])
  }
}
