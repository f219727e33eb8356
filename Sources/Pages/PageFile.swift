// The files of `web/` as the hub serves them. The build's plugin HubEmbedPages puts their texts into the executable as
// literals, which are read-only data; each is compressed and given its tag once, at its first use.
import CHubOpenSSL
import HubDeflate

/// A text that is served as it stands.
public struct PageFile: Sendable {
  public let bytes: [UInt8]
  /// With gzip (RFC 1952); nil where that is no smaller.
  public let compressed: [UInt8]?
  /// Its media type.
  public let type: StaticString
  /// Names its content: the first 128 bits of its SHA-256 in hexadecimal.
  public let tag: String

  /// Compresses the bytes as far as zlib can: some 20 ms for 300 KB.
  public init(_ bytes: [UInt8], type: StaticString) {
    self.bytes = bytes
    self.type = type
    let gzip = Gzip(level: 9).compress(bytes)
    compressed = gzip.count < bytes.count ? gzip : nil
    var digest = [UInt8](repeating: 0, count: 32)
    // One-shot, in memory: it cannot fail (openssl-SHA256_Init(3)).
    _ = unsafe SHA256(bytes, bytes.count, &digest)
    tag = digest[..<16].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// The files of `web/`.
public enum Pages {
  /// Their names, in order, for the routes. Nothing is compressed until a page is requested.
  public static let names: [String] = EmbeddedPages.all.map { "\($0.name)" }.sorted()

  /// By name. All are made at the first use.
  public static let files: [String: PageFile] = {
    var files: [String: PageFile] = [:]
    for (name, text) in EmbeddedPages.all {
      let bytes = unsafe Array(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
      files["\(name)"] = PageFile(bytes, type: type(of: "\(name)"))
    }
    return files
  }()

  /// The media type of a file by how its name ends (RFC 9239 for JavaScript).
  static func type(of name: String) -> StaticString {
    switch name.split(separator: ".").last ?? "" {
    case "html": "text/html; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "js": "text/javascript; charset=utf-8"
    case "svg": "image/svg+xml"
    case "json": "application/json"
    case "webmanifest": "application/manifest+json"
    default: "text/plain; charset=utf-8"
    }
  }
}
