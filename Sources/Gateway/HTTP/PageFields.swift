// The fields that the hub's pages, and the files of its client in JavaScript, are sent with.
import HubHTTP
import HubPages

enum PageFields {
  /// Lets pages of all origins read an answer (Fetch standard, "CORS protocol").
  static let forAllOrigins = OutgoingField("Access-Control-Allow-Origin", "*")

  /// Keeps pages of other origins from showing it, who would not say their own when they ask for an image (Fetch
  /// standard, "Cross-Origin-Resource-Policy").
  static let forOwnPages = OutgoingField("Cross-Origin-Resource-Policy", "same-origin")

  /// What each page is sent with: it may run the hub's own scripts and styles, talk to the hub, and have images of the
  /// hub and of who has the map's tiles. `require-trusted-types-for`: no text becomes markup.
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
