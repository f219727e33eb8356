// `GET /v1/drivers/{id}`, `/v1/drivers/nearby` and `/v1/drivers/within`: what a `query` over the socket asks as well.
import HubGeo
import HubHTTP
import HubMessages

enum DriverEndpoints {
  /// For ops, or the driver itself.
  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome { .query(.driver(try call.id(of: "driver"))) }

  static func nearby(_ call: HTTPCall) throws(Refusal) -> Outcome {
    .query(.drivers(try DriverSearch(nearby: call.query)))
  }

  static func withinBox(_ call: HTTPCall) throws(Refusal) -> Outcome {
    .query(.drivers(try DriverSearch(box: call.query)))
  }

  /// The polygons are in the body.
  static func withinPolygons(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let polygons = try call.request.read { (bytes) throws(MessageError) in
      try call.context.settings.reader.readPolygons(bytes)
    }
    let search = try DriverSearch(polygons, call.query)
    call.request.charge(positions: search.area.positionCount)
    return .query(.drivers(search))
  }
}
