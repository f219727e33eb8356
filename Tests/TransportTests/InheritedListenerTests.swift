// A listening socket that the service manager keeps open.
import Glibc
import HubSystem
import Testing

@testable import HubTransport

@Suite struct `A listener from the service manager` {
  @Test func `wakes the loop no more once it is stopped, though connections wait in it for the next hub`() throws {
    let manager = try SocketCalls.boundSocket(.loopback(port: 0), reusePort: false)
    try #require(listen(manager.raw, 8) == 0)
    let inherited = try InheritedListener(manager.raw)
    let loop = try EventLoop()
    try loop.listen(on: inherited)
    let phone = try Descriptor(socket(inherited.address.family, Int32(SOCK_STREAM.rawValue), 0), from: "socket")
    try #require(inherited.address.withSockaddr { connect(phone.raw, $0, $1) } == 0)
    #expect(loop.poller.wait(milliseconds: 30_000) == 1)
    loop.stopListening()
    #expect(loop.poller.wait(milliseconds: 0) == 0)
  }
}
