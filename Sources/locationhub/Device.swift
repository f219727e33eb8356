// `device`: a key for a phone whose app cannot renew tokens, and what to enter in each app.
import HubBytes
import HubCommandLine
import HubMessages
import HubSystem
import HubTokens

let device = Verb(
  name: "device", operands: "add DRIVER",
  summary: """
    Makes a key for a driver's phone, with what to type into its app.
    The line that it prints belongs into the file of --device-keys; the hub reads that again on SIGHUP.
    The key itself is kept nowhere: type it into the phone now.
    """,
  options: [
    Option("url", "URL", "where phones reach the hub (https://hub.example by default)")
  ],
  run: runDevice)

private func runDevice(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  guard arguments.operands.count == 2, arguments.operands[0] == "add" else {
    throw .usage("device takes a word and a driver's id: locationhub device add driver-12")
  }
  guard let driver = Identifier(arguments.operands[1]) else {
    throw .usage("a driver's id is 1-64 of A-Z a-z 0-9 . _ -")
  }
  var url = arguments.string("url") ?? "https://hub.example"
  while url.hasSuffix("/") { url.removeLast() }
  guard url.hasPrefix("https://") || url.hasPrefix("http://"),
    !url.contains(where: { "\"?#".contains($0) || $0.isWhitespace })
  else { throw .usage("--url must be https://host or https://host:port (or http), without ? and #") }
  StandardStream.output.write(DeviceSetup(driver: driver, key: DeviceSetup.randomKey(), url: url).text)
  return .ok
}

/// The output for a new key.
struct DeviceSetup {
  let driver: Identifier
  let key: String
  /// The hub's URL, without a slash at the end.
  let url: String

  /// 160 random bits as 32 of 0-9 a-z without i l o u, to avoid mistakes in typing.
  static func randomKey() -> String {
    var random = SystemRandomNumberGenerator()
    let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz")
    return String((0..<32).map { _ in alphabet[Int(random.next() & 31)] })
  }

  var text: String {
    """
    key     \(key)
    line    \(DeviceKeys.line(of: driver, secret: key))

    Append the line to the file of --device-keys and send the hub SIGHUP. Then, on the phone, one of:

    OwnTracks        mode HTTP, URL \(url)/v1/owntracks, authentication on, user \(driver), password = key
      or open        owntracks:///config?inline=\(ownTracksConfiguration)
    Overland         receiver endpoint \(url)/v1/overland, access token = key, device id \(driver) or empty
      or open        overland://setup?url=\(escaped("\(url)/v1/overland"))&token=\(key)&device_id=\(driver)
    Traccar Client   server URL \(url)/v1/osmand?key=\(key), device identifier \(driver)
    OsmAnd           online tracking, web address \(url)/v1/osmand?key=\(key)&id=\(driver)&lat={0}&lon={1}&timestamp={2}&accuracy={3}&altitude={4}&speed={5}&bearing={6}&speed_unit=ms

    """
  }

  /// OwnTracks' configuration (owntracks.org/booklet/features/remoteconfig).
  private var ownTracksConfiguration: String {
    let json =
      #"{"_type":"configuration","mode":3,"url":"\#(url)/v1/owntracks","auth":true,"username":"\#(driver)","#
      + #""password":"\#(key)"}"#
    return String(decoding: Base64.padded.encode([UInt8](json.utf8)), as: UTF8.self)
  }

  /// RFC 3986 §2.1.
  private func escaped(_ text: String) -> String {
    text.utf8.map { byte in
      let character = Character(UnicodeScalar(byte))
      let isPlain = character.isASCII && (character.isLetter || character.isNumber) || "-._~".contains(character)
      return isPlain ? String(character) : "%" + String(byte, radix: 16, uppercase: true)
    }.joined()
  }
}
