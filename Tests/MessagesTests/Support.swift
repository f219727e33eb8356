// What the tests of this module share: reading text, writing messages, the examples of protocol/.
import Foundation
import HubBytes
import HubMessages

func readClient(
  _ text: String, time: TimeFormat = .unixMilliseconds, isValidUTF8: Bool = true
) throws(MessageError) -> ClientEnvelope {
  try readClient(Array(text.utf8), time: time, isValidUTF8: isValidUTF8)
}

func readClient(
  _ bytes: [UInt8], time: TimeFormat = .unixMilliseconds, isValidUTF8: Bool = true,
  reader: MessageReader = MessageReader()
) throws(MessageError) -> ClientEnvelope {
  try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in
    try reader.read(bytes, time: time, isValidUTF8: isValidUTF8)
  }
}

func readServer(
  _ bytes: [UInt8], time: TimeFormat = .unixMilliseconds, reader: MessageReader = MessageReader()
) throws(MessageError) -> ServerEnvelope {
  try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in try reader.readServer(bytes, time: time) }
}

/// A message of the given type and payload, with an envelope that is right.
func envelope(_ type: String, _ payload: String) -> String {
  #"{"type":"\#(type)","payload":\#(payload),"timestamp":1763680000123,"messageId":"m1"}"#
}

/// The payload of a location_update with one member replaced or added.
func fixPayload(_ members: String) -> String {
  envelope("location_update", #"{"latitude":1,"longitude":2,"timestamp":1763680000000,\#(members)}"#)
}

func written(_ envelope: ClientEnvelope, time: TimeFormat) -> [UInt8] {
  var buffer = ByteBuffer()
  JSONWriter.write(
    envelope.message, messageID: envelope.messageID, timestamp: envelope.timestamp, time: time, into: &buffer)
  return buffer.array()
}

/// What the hub would write for what was read; empty for a message of an unknown type.
func written(_ envelope: ServerEnvelope, time: TimeFormat) -> [UInt8] {
  var buffer = ByteBuffer()
  switch envelope.message {
  case .publication(let publication):
    JSONWriter.write(publication, time: time, into: &buffer)
  case .reply(let reply):
    let number = UInt64(envelope.messageID.description.dropFirst()) ?? 0
    JSONWriter.write(reply, timestamp: envelope.timestamp, messageID: number, time: time, into: &buffer)
  case .unknown: break
  }
  return buffer.array()
}

/// What was read is another message than the test wrote.
struct Unexpected: Error {}

/// One line of protocol/examples.ndjson.
struct Example: CustomStringConvertible {
  var isFromClient: Bool
  var time: TimeFormat
  var message: [UInt8]

  var description: String { String(decoding: message.prefix(60), as: UTF8.self) }

  static var all: [Example] {
    get throws { try loaded.get() }
  }

  /// The text of protocol/README.md.
  static var specification: String { get throws { try text("README.md") } }

  private static func text(_ name: String) throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    return try String(contentsOf: root.appending(path: "protocol/\(name)"), encoding: .utf8)
  }

  private static let loaded = Result {
    try text("examples.ndjson").split(separator: "\n").map { line in
      guard let example = Example(line: String(line)) else { throw Unexpected() }
      return example
    }
  }

  private init?(line: String) {
    let mark = #","message":"#
    guard let start = line.range(of: mark) else { return nil }
    isFromClient = line.hasPrefix(#"{"direction":"client""#)
    message = Array(line[start.upperBound...].dropLast().utf8)
    if line.contains(#""time":"unix_ms","#) {
      time = .unixMilliseconds
    } else if line.contains(#""time":"apple","#) {
      time = .apple
    } else if line.contains(#""time":"rfc3339","#) {
      time = .rfc3339
    } else {
      return nil
    }
  }

  /// The text parsed by Foundation, as a judge who has not seen our code.
  func object() throws -> NSDictionary? {
    try JSONSerialization.jsonObject(with: Data(message)) as? NSDictionary
  }
}
