// What the flush interval holds back, and the metrics page, as values.
import Bytes
import Geo
import Messages
import Testing

@testable import Gateway
@testable import HubCore

@Suite struct HeldPositionsTests {
  private func delivery(key: UInt64, number: UInt64) throws -> Delivery {
    let id = try #require(Identifier("d1"))
    let location = DriverLocation(
      driverID: id, tripID: nil, coordinate: try #require(Coordinate(latitude: 1, longitude: 2)), heading: nil,
      speed: nil, accuracy: 5, confidence: .high, timestamp: Timestamp(milliseconds: 1), age: 0, after: 0)
    return Delivery(
      channel: ChannelHandle(index: 0), conflationKey: key, received: 0,
      publication: Publication(
        channel: .fleet, number: number, timestamp: Timestamp(milliseconds: 1), body: .driverLocation(location)))
  }

  @Test("keeps the newest of each key, in the order of the first, and is empty afterwards")
  func newest() throws {
    var held = HeldPositions()
    var replaced: [Bool] = []
    for (key, number) in [(7, 1), (8, 2), (7, 3), (9, 4), (8, 5)] as [(UInt64, UInt64)] {
      replaced.append(held.put(try delivery(key: key, number: number)))
    }
    #expect(replaced == [false, false, true, false, true])
    held.deadline = 5
    #expect(held.takeAll().map(\.publication.number) == [3, 5, 4])
    #expect(held.deadline == nil)
    #expect(held.takeAll().isEmpty)
    let isNew = held.put(try delivery(key: 7, number: 6))
    #expect(!isNew)
  }
}

@Suite struct PrometheusTextTests {
  @Test("sums loops, and has the same page for the same counters")
  func sums() {
    var first = LoopCounters()
    first.messagesIn = 3
    first.count(close: 1001)
    first.latency.record(microseconds: 70)
    var second = LoopCounters()
    second.messagesIn = 4
    second.count(close: 1001)
    second.count(close: 4409)
    second.latency.record(microseconds: 3_000_000)
    let page = PrometheusText.write(loops: [first, second], hub: HubCounters(), residentBytes: 42)
    let lines = String(decoding: page, as: UTF8.self).split(separator: "\n")
    #expect(lines.contains("locationhub_messages_in_total 7"))
    #expect(lines.contains("locationhub_closes_total{code=\"1001\"} 2"))
    #expect(lines.contains("locationhub_closes_total{code=\"4409\"} 1"))
    #expect(lines.contains("locationhub_resident_bytes 42"))
    #expect(lines.contains("locationhub_delivery_seconds_bucket{le=\"+Inf\"} 2"))
    #expect(lines.contains("locationhub_delivery_seconds_count 2"))
    #expect(PrometheusText.write(loops: [first, second], hub: HubCounters(), residentBytes: 42) == page)
  }
}
