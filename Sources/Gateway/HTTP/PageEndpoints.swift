// The hub's pages, the JavaScript client, the settings of pages, and streets or images for their map. They need no
// credential, since none has positions; positions come from the socket and other endpoints, which need one.
import HubBytes
import HubGeo
import HubHTTP
import HubMessages
import HubPages
import HubRuntime
import HubSystem
import HubTiles

enum PageEndpoints {
  static let routes: [HTTPRoute] =
    [
      HTTPRoute("/", page("index.html")), HTTPRoute("/track/{id}", page("track.html")),
      HTTPRoute("/v1/about", .on(.get, for: .open, about)),
      HTTPRoute("/streets", .on(.get, for: .open) { (call) throws(Refusal) in try streets(call, tile: nil) }),
      HTTPRoute("/streets/14/{id}/{id}", .on(.get, for: .open, streetTile)),
      HTTPRoute("/tiles/{id}/{id}/{id}", .on(.get, for: .open, image)),
    ]
    + Pages.names.map { name in
      HTTPRoute("/\(name)", isForAllOrigins: clientFiles.contains(name), page(name))
    }

  /// The client's files: pages of any origin may load them, which gives them no rights at the hub.
  private static let clientFiles: Set<String> = [
    "hub.js", "hub-areas.js", "hub-binary.js", "hub-http.js", "hub-store.js", "hub.d.ts",
  ]

  // MARK: Files

  private static func page(_ name: String) -> HTTPRoute.Action {
    .on(.get, for: .open) { (call) throws(Refusal) in
      _ = try pages(call)
      guard let file = Pages.files[name] else {
        throw Refusal(.notFound, "this hub was built without \(name)")
      }
      let origins = clientFiles.contains(name) ? [PageFields.forAllOrigins] : []
      return .respond(response(file, to: call, call.context.settings.pageFields + origins))
    }
  }

  /// The configuration of the pages; throws where there are none.
  private static func pages(_ call: HTTPCall) throws(Refusal) -> PageConfiguration {
    guard let pages = call.context.configuration.pages else { throw Refusal(.notFound, "there is no such endpoint") }
    return pages
  }

  /// The file, compressed if the client accepts it, or 304 if the client has it (RFC 9110 §13.1.2). Each form has a tag
  /// (§8.8.3.3). `no-cache`: a browser always checks whether it is current, so that no page meets a hub of another
  /// release.
  private static func response(_ file: PageFile, to call: HTTPCall, _ fields: [OutgoingField]) -> Response {
    let plain = "\"\(file.tag)\""
    let gzip = "\"\(file.tag)-gz\""
    let asked = call.request.head.fields
    let compressed = asked.acceptGzip ? file.compressed : nil
    let common =
      fields + [
        OutgoingField("Cache-Control", "no-cache"), OutgoingField("Vary", "Accept-Encoding"),
        OutgoingField("ETag", compressed == nil ? plain : gzip),
      ]
    if asked.ifNoneMatch(has: [plain, gzip]) { return Response(.notModified, fields: common) }
    let coding = compressed == nil ? [] : [OutgoingField("Content-Encoding", "gzip")]
    return Response(.ok, contentType: file.type, body: compressed ?? file.bytes, fields: common + coding)
  }

  // MARK: Streets

  private static func streetTile(_ call: HTTPCall) throws(Refusal) -> Outcome {
    guard let x = Int(call.parameters[0]), let y = Int(call.parameters[1]) else {
      throw Refusal(.notFound, "a tile is /streets/14/<x>/<y>")
    }
    return try streets(call, tile: StreetTile(x: x, y: y))
  }

  /// A tile without streets is empty, not an error: a page requests all that it shows.
  private static func streets(_ call: HTTPCall, tile: StreetTile?) throws(Refusal) -> Outcome {
    guard let streets = try pages(call).map.streets else { throw Refusal(.notFound, "this hub has no streets") }
    guard let file = streets.file(tile) else {
      throw Refusal(.notFound, "this hub has its streets at \(streets.path)")
    }
    return .respond(response(file, to: call, [PageFields.forOwnPages]))
  }

  // MARK: Images

  private static func image(_ call: HTTPCall) throws(Refusal) -> Outcome {
    guard try pages(call).map.tiles?.pack != nil else { throw Refusal(.notFound, "this hub has no images of a map") }
    let numbers = call.parameters.compactMap { Int($0) }
    guard numbers.count == 3, let tile = MapTile(zoom: numbers[0], x: numbers[1], y: numbers[2]) else {
      throw Refusal(.notFound, "an image is /tiles/<zoom>/<x>/<y>")
    }
    return .image(tile)
  }

  /// Runs on the thread that reads them. A missing image is an empty map, not an error: a page requests all that it
  /// shows. One that cannot be read is not the asker's fault, and is logged once a minute.
  static func response(_ tile: MapTile, from worker: inout TileWorker, to asked: HeaderFields, _ log: Log) -> Response {
    let common = [PageFields.forOwnPages, OutgoingField("X-Content-Type-Options", "nosniff")]
    let cached = common + [OutgoingField("Cache-Control", "max-age=3600")]
    do throws(MapTileError) {
      guard let image = try worker.reader.image(tile) else { return Response(.noContent, fields: cached) }
      let tag = "\"\(image.tag)\""
      let fields = cached + [OutgoingField("ETag", tag)]
      if asked.ifNoneMatch(has: [tag]) { return Response(.notModified, fields: fields) }
      return Response(.ok, contentType: image.type, body: image.bytes, fields: fields)
    } catch {
      let now = ClockReading.uptime()
      if worker.warned.map({ now - $0 > nanoseconds(Limits.tileWarningSeconds) }) ?? true {
        worker.warned = now
        log(.error, "tile_unreadable", ["tile": "\(tile.zoom)/\(tile.x)/\(tile.y)", "error": "\(error)"])
      }
      return Response(.noContent, fields: common)
    }
  }

  // MARK: About

  private static func about(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let map = try pages(call).map
    let configuration = call.context.configuration
    let takesDevelopment =
      configuration.allowsDevelopmentCredentials && configuration.hosts.allows(call.request.head.fields)
    let fields = [OutgoingField("Cache-Control", "no-store")]
    return .respond(
      .json(fields: fields) { body in
        body.append("{\"release\":", Release.name)
        body.append(",\"devAuth\":", takesDevelopment)
        body.append(",\"time\":", call.context.now.timestamp, as: .unixMilliseconds)
        body.append(",\"map\":{")
        write(map, into: &body)
        body.append("}}")
      })
  }

  private static func write(_ map: BaseMap, into body: inout ByteBuffer) {
    var comma: StaticString = ""
    func next(_ key: StaticString) {
      body.append(comma)
      body.append(key)
      comma = ","
    }
    if let box = map.box {
      next("\"center\":")
      box.center.writeJSON(into: &body)
      next("\"box\":")
      [box.west, box.south, box.east, box.north].writeJSON(into: &body)
    }
    for (key, value) in [
      ("\"streets\":" as StaticString, map.streets?.path), ("\"tiles\":", map.tiles?.path),
      ("\"attribution\":", map.attribution),
    ] {
      guard let value else { continue }
      next(key)
      value.writeJSON(into: &body)
    }
    if let zooms = map.tiles?.pack?.zooms {
      next("\"zooms\":")
      [Double(zooms.lowerBound), Double(zooms.upperBound)].writeJSON(into: &body)
    }
  }
}
