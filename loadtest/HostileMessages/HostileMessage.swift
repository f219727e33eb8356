// Messages that follow the rules and cost their reader as much as their bytes allow.
//
// A reader whose work grows faster than the bytes it is given can be stopped by whoever may send to it ("algorithmic
// complexity attacks": S. Crosby, D. Wallach, USENIX Security 2003). Each shape here aims at one part of the reader:
// its stack, its list of values, its search for names, its numbers, its escapes, its decoders. They are made by a seed,
// so that tests can bound the work that they cause and benchmarks can time it. All are within the limits of
// protocol/README.md ("Envelope"): up to 256 KiB, 32 levels, 128 members an object, 65,000 values.

/// One way to be expensive.
public enum HostileMessage: String, CaseIterable, Sendable {
  /// Arrays within arrays, as deep as may be, again and again; and objects.
  case deepArrays = "deep-arrays"
  case deepObjects = "deep-objects"
  /// As many values as may be, of two bytes; and empty arrays, objects and strings.
  case wideNumbers = "wide-numbers"
  case wideEmpties = "wide-empties"
  /// Objects full of short names that no message has.
  case manyNames = "many-names"
  /// Objects full of the protocol's names, each time in another order.
  case knownNames = "known-names"
  /// Names as long as one of the protocol's that begin with the same eight bytes.
  case nearlyKnownNames = "nearly-known-names"
  /// Names of one length with the same beginning, of 8 to 40 bytes; and of 2,000.
  case equalPrefixes = "equal-prefixes"
  case longPrefixes = "long-prefixes"
  /// Names of which each is spelled with an escape.
  case escapedNames = "escaped-names"
  /// Short numbers that have a large exponent.
  case exponents
  /// Numbers of 17 to 25 digits, and of some hundred.
  case manyDigits = "many-digits"
  case longDigits = "long-digits"
  /// Numbers half-way between two doubles, and a little more.
  case halfways
  /// Strings of nothing but escapes, and of surrogate pairs.
  case escapes
  case surrogates
  /// More white space than anything else.
  case whiteSpace = "white-space"
  /// Strings of no or one byte.
  case shortStrings = "short-strings"
  /// Batches: of fixes that have all their members, nested ones, ones that have numbers with exponents, and ones full
  /// of names that nobody knows.
  case fixes
  case nestedFixes = "nested-fixes"
  case exponentFixes = "exponent-fixes"
  case crowdedFixes = "crowded-fixes"
  /// A route of as many places as may be.
  case route

  /// The whole message, of at most so many bytes (4,096 or more) and not much less where the limits on values allow it.
  public func text(bytes: Int, _ random: inout some RandomNumberGenerator) -> [UInt8] {
    var writer = HostileWriter(limit: bytes)
    switch self {
    case .fixes, .nestedFixes, .exponentFixes, .crowdedFixes:
      writer.message("location_batch") { writer in
        writer.append(#""locations":["#)
        writer.list(atMost: 500, values: crowdsFixes ? 128 : 15) { fix(&$0, $1, &random) }
        writer.append("]")
      }
    case .route:
      writer.message("trip_status") { writer in
        writer.append(#""tripId":"T1","status":"requested","timestamp":1763680000000,"route":["#)
        writer.list(atMost: 5000, values: 5) { writer, _ in place(&writer, &random) }
        writer.append("]")
      }
    case .deepArrays, .deepObjects, .wideNumbers, .wideEmpties, .manyNames, .knownNames, .nearlyKnownNames,
      .equalPrefixes, .longPrefixes, .escapedNames, .exponents, .manyDigits, .longDigits, .halfways, .escapes,
      .surrogates, .whiteSpace, .shortStrings:
      writer.message("ping") { writer in
        writer.append(#""unread":["#)
        writer.list(atMost: .max, values: values) { value(&$0, $1, &random) }
        writer.append("]")
      }
    }
    return writer.bytes
  }

  /// Values and names of one element, about.
  private var values: Int {
    switch self {
    case .deepArrays: 30
    case .deepObjects: 60
    case .manyNames, .knownNames, .nearlyKnownNames, .equalPrefixes, .longPrefixes, .escapedNames: 256
    case .wideNumbers, .wideEmpties, .exponents, .manyDigits, .longDigits, .halfways, .escapes, .surrogates,
      .whiteSpace,
      .shortStrings, .fixes, .nestedFixes, .exponentFixes, .crowdedFixes, .route:
      1
    }
  }

  private var crowdsFixes: Bool { self == .crowdedFixes }

  // MARK: Elements

  private func value(_ writer: inout HostileWriter, _ number: Int, _ random: inout some RandomNumberGenerator) {
    switch self {
    case .deepArrays: writer.append(String(repeating: "[", count: 28) + String(repeating: "]", count: 28))
    case .deepObjects:
      writer.append(String(repeating: #"{"a":"#, count: 28) + "0" + String(repeating: "}", count: 28))
    case .wideNumbers: writer.append("0")
    case .wideEmpties: writer.append(["[]", "{}", "\"\""][number % 3])
    case .manyNames, .knownNames, .nearlyKnownNames, .equalPrefixes, .longPrefixes, .escapedNames:
      writer.object(names(&random))
    case .exponents: writer.append(["1e300", "-7e-300", "3e99", "9.1e-99"][Int.random(in: 0..<4, using: &random)])
    case .manyDigits: writer.append("0." + digits(Int.random(in: 17...25, using: &random), &random))
    case .longDigits: writer.append(digits(Int.random(in: 100...2000, using: &random), &random) + "e-9")
    case .halfways:
      // 2^53 + 1 lies between two doubles; what stands far behind it decides.
      let tail = String(repeating: "0", count: Int.random(in: 8...40, using: &random))
      writer.append(["9007199254740993.\(tail)1", "9007199254740993.\(tail)1e-60"][number % 2])
    case .escapes: writer.append("\"" + String(repeating: #"\n\u0041\\"#, count: 40) + "\"")
    case .surrogates: writer.append("\"" + String(repeating: #"\uD83D\uDE97"#, count: 40) + "\"")
    case .whiteSpace: writer.append(String(repeating: " \t\r\n", count: 100) + "0" + String(repeating: "\n", count: 99))
    case .shortStrings: writer.append(["\"\"", "\"a\""][number % 2])
    case .fixes, .nestedFixes, .exponentFixes, .crowdedFixes, .route: break
    }
  }

  /// 127 different names of one object.
  private func names(_ random: inout some RandomNumberGenerator) -> [String] {
    func letters(_ number: Int, _ count: Int) -> String {
      var (rest, text) = (number, "")
      for _ in 0..<count {
        text.append(Character(Unicode.Scalar(UInt8(97 + rest % 26))))
        rest /= 26
      }
      return text
    }
    let prefix = String(repeating: "x", count: Int.random(in: 8...40, using: &random))
    let names = (0..<127).map { number -> String in
      switch self {
      case .knownNames: HostileMessage.known[number % HostileMessage.known.count]
      case .nearlyKnownNames:
        ["timestam", "headingA", "batteryL", "expected"][number % 4] + letters(number / 4, [1, 7, 4, 6][number % 4])
      case .equalPrefixes: prefix + letters(number, 2)
      case .longPrefixes: String(repeating: "x", count: 2000) + letters(number, 2)
      case .escapedNames: #"\u0061"# + letters(number, 2)
      default: letters(number, 2)
      }
    }
    return Array(Set(names)).sorted().shuffled(using: &random)
  }

  private static let known = [
    "type", "payload", "timestamp", "messageId", "tripId", "latitude", "longitude", "accuracy", "heading", "speed",
    "altitude", "source", "headingAccuracy", "speedAccuracy", "batteryLevel", "locations", "coordinate", "horizontal",
    "driverId", "confidence", "age", "after", "status", "vehicleType", "tags", "location", "expectedStatus", "pickup",
    "dropoff", "riderId", "route", "channel", "since", "epoch", "viewId", "kind", "radius", "limit", "bbox", "polygon",
    "maxAge", "stale", "geometry", "coordinates", "drivers", "token",
  ]

  private func digits(_ count: Int, _ random: inout some RandomNumberGenerator) -> String {
    var text = "\(Int.random(in: 1...9, using: &random))"
    for _ in 1..<count { text.append(Character(Unicode.Scalar(UInt8.random(in: 48...57, using: &random)))) }
    return text
  }

  private func fix(_ writer: inout HostileWriter, _ number: Int, _ random: inout some RandomNumberGenerator) {
    let (latitude, longitude) = (
      Double.random(in: -90...90, using: &random), Double.random(in: -180...180, using: &random)
    )
    let place = #""latitude":\#(latitude),"longitude":\#(longitude)"#
    let time = #""timestamp":\#(1_763_680_000_000 + number * 1000)"#
    let level = Double.random(in: 0...1, using: &random)
    switch self {
    case .nestedFixes:
      writer.append(
        #"{"id":"\#(number)","coordinate":{\#(place),"altitude":\#(level),"heading":\#(level),"speed":\#(level)},"#
          + #""accuracy":{"horizontal":\#(level)},\#(time),"source":"gps"}"#)
    case .exponentFixes:
      let small = "7e-\(Int.random(in: 200...300, using: &random))"
      writer.append(
        #"{"latitude":\#(small),"longitude":\#(small),\#(time),"accuracy":\#(small),"heading":\#(small),"speed":\#(small),"#
          + #""altitude":\#(small),"headingAccuracy":\#(small),"speedAccuracy":\#(small),"batteryLevel":\#(small)}"#)
    case .crowdedFixes:
      let more = (0..<56).map { #""\#(String($0, radix: 36))":0"# }.joined(separator: ",")
      writer.append(#"{\#(place),\#(time),\#(more)}"#)
    default:
      writer.append(
        #"{\#(place),\#(time),"accuracy":\#(level),"heading":\#(level),"speed":\#(level),"altitude":\#(level),"#
          + #""headingAccuracy":\#(level),"speedAccuracy":\#(level),"batteryLevel":\#(level),"source":"cached"}"#)
    }
  }

  private func place(_ writer: inout HostileWriter, _ random: inout some RandomNumberGenerator) {
    let latitude = Double.random(in: -90...90, using: &random)
    writer.append(#"{"latitude":\#(latitude),"longitude":\#(Double.random(in: -180...180, using: &random))}"#)
  }
}

/// Writes a message up to a limit of bytes.
struct HostileWriter {
  private(set) var bytes: [UInt8] = []
  private let limit: Int
  /// Values and names that may still come.
  private var values = 64_900
  private static let end = Array(#"},"timestamp":1763680000123,"messageId":"m1"}"#.utf8)

  init(limit: Int) {
    self.limit = limit
    bytes.reserveCapacity(limit)
  }

  mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  mutating func message(_ type: String, _ payload: (inout HostileWriter) -> Void) {
    // What comes back of a ping is limited: it is beside the payload, where nobody reads it.
    append(#"{"type":"\#(type)","payload":{\#(type == "ping" ? #"},"unread":{"# : "")"#)
    payload(&self)
    bytes += HostileWriter.end
  }

  /// Elements while there is room for another one; each has so many values and names.
  mutating func list(atMost count: Int, values each: Int, _ element: (inout HostileWriter, Int) -> Void) {
    for number in 0..<count {
      let before = bytes.count
      if number > 0 { append(",") }
      element(&self, number)
      values -= each
      guard values >= 0, bytes.count + HostileWriter.end.count + 1 <= limit else {
        bytes.removeSubrange(before...)
        return
      }
    }
  }

  mutating func object(_ names: [String]) {
    append("{")
    for (index, name) in names.enumerated() { append(#"\#(index == 0 ? "" : ",")"\#(name)":0"#) }
    append("}")
  }
}

/// Messages as apps send them, to measure the others by.
public enum OrdinaryMessage: String, CaseIterable, Sendable {
  case update = "location_update"
  /// An update as another encoder writes it, with white space, which goes the reader's general way.
  case spacedUpdate = "location_update, spaced"
  case batch = "location_batch of 50"
  case subscribe
  case query

  public var text: [UInt8] {
    let fix = #""latitude":48.1371273,"longitude":11.5753822,"accuracy":5.2,"heading":271.5,"speed":10.01"#
    let (payload, type): (String, String) =
      switch self {
      case .update: (#""tripId":"T17",\#(fix),"timestamp":1763680000000"#, "location_update")
      case .spacedUpdate:
        (#" "tripId": "T17", \#(fix.replacing(":", with: ": ")), "timestamp": 1763680000000 "#, "location_update")
      case .batch:
        (
          #""tripId":"T17","locations":["#
            + (0..<50).map { #"{\#(fix),"timestamp":\#(1_763_680_000_000 + $0 * 1000)}"# }.joined(separator: ",") + "]",
          "location_batch"
        )
      case .subscribe: (#""channel":"trip:T17","since":17,"epoch":"k3v9x0""#, "subscribe")
      case .query: (#""kind":"nearby","latitude":48.1371273,"longitude":11.5753822,"radius":1500,"limit":20"#, "query")
      }
    return Array(#"{"type":"\#(type)","payload":{\#(payload)},"timestamp":1763680000123,"messageId":"d17-123"}"#.utf8)
  }
}
