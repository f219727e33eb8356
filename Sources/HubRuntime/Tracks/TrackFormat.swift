// The formats of tracks, and their selection by a request.
package import HubBytes
package import HubMessages

package enum TrackFormat: String, CaseIterable, Sendable {
  case geoJSON = "geojson"
  case gpx
  case csv

  /// RFC 7946 §12; GPX has no registered type, this one is what servers and browsers use; RFC 4180 §3.
  package var mediaType: StaticString {
    switch self {
    case .geoJSON: "application/geo+json"
    case .gpx: "application/gpx+xml"
    case .csv: "text/csv; charset=utf-8; header=present"
    }
  }

  package func write(_ track: Track, time: TimeFormat, into bytes: inout ByteBuffer) {
    switch self {
    case .geoJSON: TrackGeoJSON.write(track, time: time, into: &bytes)
    case .gpx: TrackGPX.write(track, into: &bytes)
    case .csv: TrackCSV.write(track, into: &bytes)
    }
  }

  /// The format that an `Accept` field prefers (RFC 9110 §12.5.1), by default GeoJSON; nil where it accepts none of
  /// these.
  package init?(accept: String?) {
    guard let accept else {
      self = .geoJSON
      return
    }
    var best: (format: TrackFormat, quality: Double)?
    for range in accept.split(separator: ",") {
      let parts = range.split(separator: ";").map { $0.trimmed.lowercased() }
      guard let type = parts.first, let format = TrackFormat(range: type) else { continue }
      let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
      if weight > best?.quality ?? 0 { best = (format, weight) }
    }
    guard let best else { return nil }
    self = best.format
  }

  /// A media range; a wildcard means GeoJSON.
  private init?(range: String) {
    switch range {
    case "application/geo+json", "application/json", "application/*", "*/*": self = .geoJSON
    case "application/gpx+xml", "application/gpx", "application/xml", "text/xml": self = .gpx
    case "text/csv", "text/*": self = .csv
    default: return nil
    }
  }
}

extension Substring {
  /// Without spaces and tabs at its ends.
  fileprivate var trimmed: Substring {
    var text = self
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}
