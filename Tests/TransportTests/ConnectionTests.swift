// Connections from their beginning to each of their ends.

import Glibc
import Testing

@testable import Transport

@Suite struct `Connections over loopback` {
  @Test func `bytes come back from an echo, and can be changed where they lie`() throws {
    let pair = try Pair()
    pair.atServer.onReceived = { id, bytes in
      for index in bytes.indices { bytes[index] ^= 0xFF }
      pair.atServer.send(Array(bytes), to: id)
    }
    let (client, server) = try pair.connect()
    pair.atClient.send([1, 2, 3], to: client)
    pair.turn(until: { pair.atClient.received[client]?.count == 3 })
    #expect(pair.atServer.received[server] == [1, 2, 3])
    #expect(pair.atClient.received[client] == [0xFE, 0xFD, 0xFC])
    #expect(pair.server.counters.accepted == 1)
    #expect(pair.server.counters.bytesRead == 3)
    #expect(pair.client.counters.bytesWritten == 3)
  }
}
