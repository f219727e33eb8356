// The header fields of the hub's pages and of its JavaScript client.
import HubHTTP
import HubPages

enum PageFields {
  /// Lets pages of all origins read an answer (Fetch standard, "CORS protocol").
  static let forAllOrigins = OutgoingField("Access-Control-Allow-Origin", "*")

  /// Keeps pages of other origins from showing it; they send no origin when they request an image (Fetch standard,
  /// "Cross-Origin-Resource-Policy").
  static let forOwnPages = OutgoingField("Cross-Origin-Resource-Policy", "same-origin")

  /// The fields of each page: it may run the hub's own scripts and styles, connect to the hub, and show images of the
  /// hub and of the map's tile server. `require-trusted-types-for`: no text becomes markup.
  static func all(_ pages: PageConfiguration?) -> [OutgoingField] {
    let tiles = pages?.map.tiles?.origin.map { " \($0)" } ?? ""
    return [
      OutgoingField(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:\(tiles); connect-src 'self'; "
          + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"),
      OutgoingField("X-Content-Type-Options", "nosniff"), OutgoingField("Referrer-Policy", "no-referrer"),
    ]
  }
}
