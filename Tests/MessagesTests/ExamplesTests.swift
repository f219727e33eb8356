// Every example of protocol/ is read, and written again with the same meaning.
import Foundation
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@Suite struct Examples {
  @Test("there is an example of every message type in each direction")
  func complete() throws {
    func types(_ isFromClient: Bool) throws -> Set<String> {
      Set(try Example.all.filter { $0.isFromClient == isFromClient }.compactMap { try $0.object()?["type"] as? String })
    }
    #expect(
      try types(true) == [
        "location_update", "location_batch", "driver_status", "trip_status", "trip_change", "offer_decline",
        "subscribe", "unsubscribe", "ping", "refresh", "query",
      ])
    #expect(
      try types(false) == [
        "connected", "driver_location", "trip_update", "notification", "subscribed", "unsubscribed", "ack", "pong",
        "error", "sampling", "eta_update", "result", "area_update", "raw_fix",
        "counts_update", "stats", "offer", "offer_withdrawn",
      ])
  }

  @Test("the specification begins with a table of every message type by direction, and of nothing else")
  func table() throws {
    let rows = try Example.specification.split(separator: "\n").drop { !$0.hasPrefix("| message |") }
      .dropFirst(2).prefix { $0.hasPrefix("|") }.map { $0.split(separator: "|", omittingEmptySubsequences: false) }
    func types(_ isFromClient: Bool) -> [String] {
      rows.filter { ($0[2] == " to the hub ") == isFromClient }
        .flatMap { $0[1].matches(of: /`(\w+)`/).map { String($0.1) } }.sorted()
    }
    for isFromClient in [true, false] {
      let examples = try Example.all.filter { $0.isFromClient == isFromClient }
      let known = Set(try examples.compactMap { try $0.object()?["type"] as? String })
      #expect(types(isFromClient) == known.sorted())
    }
  }

  @Test("an example from a client is read, and reads the same when it is written again in any time format")
  func client() throws {
    for example in try Example.all where example.isFromClient {
      let read = try readClient(example.message, time: example.time, isValidUTF8: false)
      for time in TimeFormat.allCases {
        #expect(try readClient(written(read, time: time), time: time) == read, "\(example)")
      }
    }
  }

  @Test("an example from the hub is read, and reads the same when it is written again in any time format")
  func server() throws {
    for example in try Example.all where !example.isFromClient {
      let read = try readServer(example.message, time: example.time)
      for time in TimeFormat.allCases {
        #expect(try readServer(written(read, time: time), time: time) == read, "\(example)")
      }
    }
  }

  @Test("the hub writes each example from the hub to the byte")
  func bytes() throws {
    for example in try Example.all where !example.isFromClient {
      let read = try readServer(example.message, time: example.time)
      #expect(
        String(decoding: written(read, time: example.time), as: UTF8.self)
          == String(decoding: example.message, as: UTF8.self))
    }
  }

  @Test("no truncation of an example is read, and none crashes")
  func truncations() throws {
    let reader = MessageReader()
    for example in try Example.all {
      for length in 0..<example.message.count {
        // An exact heap copy, so that the address sanitizer sees a read behind the end.
        let text = Array(example.message[..<length])
        #expect(throws: MessageError.self) {
          if example.isFromClient {
            _ = try readClient(text, time: example.time, isValidUTF8: false, reader: reader)
          } else {
            _ = try readServer(text, time: example.time, reader: reader)
          }
        }
      }
    }
  }

  @Test("no change of a single byte crashes; what is still read can be written and read again")
  func mutations() throws {
    let reader = MessageReader()
    var random = SplitMix64(seed: 4)
    let replacements = Array(#""\{}[]:,-+.eE0159 antufx/"#.utf8) + [0, 0x0A, 0x1F, 0x7F, 0x80, 0xC0, 0xED, 0xF4, 0xFF]
    for example in try Example.all {
      for position in 0..<example.message.count {
        var text = example.message
        for _ in 0..<4 {
          text[position] = replacements[Int.random(in: 0..<replacements.count, using: &random)]
          try check(text, example, reader)
        }
      }
    }
  }

  private func check(_ text: [UInt8], _ example: Example, _ reader: MessageReader) throws {
    if example.isFromClient {
      guard
        case .success(var read) = result({ () throws(MessageError) in
          try readClient(text, time: example.time, isValidUTF8: false, reader: reader)
        })
      else { return }
      if case .locationBatch(var batch) = read.message {
        // A fix that could not be read is written as null, whatever was wrong with it.
        batch.fixes = batch.fixes.map { $0.flatMapError { _ in .failure(.badMessage) } }
        read.message = .locationBatch(batch)
      }
      #expect(try readClient(written(read, time: .unixMilliseconds), reader: reader) == read)
    } else {
      guard
        case .success(let read) = result({ () throws(MessageError) in
          try readServer(text, time: example.time, reader: reader)
        })
      else { return }
      let again = written(read, time: .unixMilliseconds)
      if !again.isEmpty { _ = try readServer(again, reader: reader) }
    }
  }

  private func result<T>(_ body: () throws(MessageError) -> T) -> Result<T, MessageError> {
    do { return .success(try body()) } catch { return .failure(error) }
  }
}
