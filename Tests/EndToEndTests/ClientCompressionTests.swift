// The client library and the hub, compressing for each other.
import HubClientLoop
import HubGateway
import HubGeo
import HubMessages
import HubWebSocket
import Testing

extension EndToEnd.Compression {
  /// A driver's batch and a rider's positions, and the counters of the hub that had them.
  private func drive(_ offer: DeflateParameters?, contexts: Int) throws -> Metrics {
    let hub = try TestHub { $0.limits.compressionContexts = contexts }
    let bench = try ClientBench()
    func client(_ query: String) throws -> ClientID {
      var configuration = ClientConfiguration(url: try HubURL("ws://127.0.0.1:\(hub.port)/v1/ws?\(query)"))
      configuration.compression = offer
      return bench.clients.add(configuration)
    }
    let rider = try client("role=rider&id=r1")
    bench.clients.subscribe(rider, to: .trip(Identifier("T1")!))
    #expect(bench.run { bench.subscribed == 1 })
    let driver = try client("role=driver&id=d1")
    let fixes = (0..<40).map { step in
      Fix(
        coordinate: Coordinate(latitude: 37.5 + Double(step) * 1e-4, longitude: -122.25)!,
        timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(step) * 1000), accuracy: 5)
    }
    bench.clients.send(LocationBatch(tripID: Identifier("T1"), fixes: fixes.map { .success($0) }), from: driver)
    #expect(bench.run { bench.positions[rider.index]?.count == 40 && bench.acks.count == 1 })
    #expect(bench.positions[rider.index]?.map(\.timestamp) == fixes.map(\.timestamp))
    #expect(bench.clients.session(rider).counters.unreadable == 0)
    let metrics = try hub.metrics()
    bench.clients.closeAll()
    #expect(bench.run { bench.clients.connections == 0 })
    return metrics
  }

  @Test("clients of the library compress where they are configured to offer it, and nothing else changes")
  func clientLibrary() throws {
    let without = try drive(nil, contexts: 10)
    #expect(without["compressed_sessions_opened_total"] == 0 && without["inflates_total"] == 0)
    // The batch is compressed, and each position; the subscription is too small without a context.
    let shared = try drive(.withoutContexts, contexts: 10)
    #expect(shared["compressed_sessions_opened_total"] == 2 && shared["compression_contexts"] == 0)
    #expect(shared["inflates_total"] == 1 && shared["deflates_total"] >= 40)
    let keeping = try drive(DeflateParameters(), contexts: 10)
    #expect(keeping["compression_contexts"] == 2 && keeping["inflates_total"] == 2)
    #expect(keeping["deflate_output_bytes_total"] < shared["deflate_output_bytes_total"] / 2)
    // The hub keeps no contexts: the client goes without.
    #expect(try drive(DeflateParameters(), contexts: 0)["compression_contexts"] == 0)
  }
}
