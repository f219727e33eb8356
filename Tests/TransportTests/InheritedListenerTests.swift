// A listening socket that the service manager keeps open.
import Glibc
import HubSystem
import Testing

@testable import HubTransport

@Suite struct `A listener from the service manager` {
  @Test func `is no Unix socket, and the error says so`() throws {
    let local = try Descriptor(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), from: "socket")
    var name = sockaddr(sa_family: sa_family_t(AF_UNIX), sa_data: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    // An address of the family's length alone gets a name from the kernel (unix(7), "Autobind feature").
    try #require(bind(local.raw, &name, socklen_t(MemoryLayout<sa_family_t>.size)) == 0)
    try #require(listen(local.raw, 8) == 0)
    #expect(throws: SystemError(call: "getsockname", errno: EAFNOSUPPORT)) { try InheritedListener(local.raw) }
  }

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
