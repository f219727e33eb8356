// Addresses, errors, facts about the process, and the lock of a port.

import Glibc
import HubSystem
import Testing

@testable import HubTransport

@Suite struct `Socket addresses` {
  @Test(arguments: [
    ("127.0.0.1", "127.0.0.1:80"), ("localhost", "127.0.0.1:80"), ("0.0.0.0", "0.0.0.0:80"),
    ("255.1.2.3", "255.1.2.3:80"), ("::1", "[::1]:80"), ("[::1]", "[::1]:80"), ("::", "[::]:80"),
    ("2001:db8:0:0::7", "[2001:db8::7]:80"), ("::ffff:10.1.2.3", "10.1.2.3:80"),
  ])
  func `are read from their numeric form and written in the canonical one`(host: String, text: String) {
    #expect(SocketAddress(host: host, port: 80)?.description == text)
  }

  @Test(arguments: ["", "example.org", "1.2.3", "1.2.3.4.5", "256.1.1.1", "::g", "127.0.0.1:80", "[127.0.0.1", " ::1"])
  func `are not read from anything else`(host: String) {
    #expect(SocketAddress(host: host, port: 80) == nil)
  }

  @Test func `know loopback, wildcard and what to count by`() throws {
    func address(_ host: String) throws -> SocketAddress { try #require(SocketAddress(host: host, port: 1)) }
    #expect(try address("127.5.5.5").isLoopback && address("::1").isLoopback)
    #expect(try !address("128.0.0.1").isLoopback && !address("::2").isLoopback && !address("2001::1").isLoopback)
    #expect(try address("::").isWildcard && address("0.0.0.0").isWildcard && !address("::1").isWildcard)
    #expect(try address("2001:db8::1").limitKey == address("2001:db8::ffff").limitKey)
    #expect(try address("2001:db8::1").limitKey != address("2001:db8:0:1::1").limitKey)
    #expect(try address("10.0.0.1").limitKey != address("10.0.0.2").limitKey)
    #expect(try address("10.0.0.1").limitKey == address("10.0.0.1").with(port: 9).limitKey)
  }

  @Test(arguments: [
    ("127.0.0.1", "127.0.0.1", true), ("0.0.0.0", "10.0.0.1", true), ("::", "10.0.0.1", true), ("::", "::1", true),
    ("127.0.0.1", "127.0.0.2", false), ("0.0.0.0", "::1", false), ("::1", "127.0.0.1", false),
  ])
  func `overlap where one port has no room for both`(one: String, other: String, isTrue: Bool) throws {
    let one = try #require(SocketAddress(host: one, port: 80))
    let other = try #require(SocketAddress(host: other, port: 80))
    #expect(one.overlaps(other) == isTrue && other.overlaps(one) == isTrue)
    #expect(!one.overlaps(other.with(port: 81)) && !one.with(port: 0).overlaps(other.with(port: 0)))
  }
}

@Suite struct `Port lock` {
  private let any = SocketAddress(host: "0.0.0.0", port: 0)!

  @Test func `a port is had once, on the same address and on a wildcard, and is free again afterwards`() throws {
    let address: SocketAddress
    do {
      let lock = try lockOfQuietPort()
      address = lock.address
      #expect(failure(of: address) == .heldByAnotherHub(address))
      #expect(failure(of: any.with(port: address.port)) == .heldByAnotherHub(any.with(port: address.port)))
      // The loops of the hub that has the lock listen beside each other.
      let loops = [try EventLoop(), try EventLoop()]
      for loop in loops { #expect(try loop.listen(address, reusePort: true) == address) }
      #expect(failure(of: address) != nil)
    }
    #expect(failure(of: address) == nil)
  }

  @Test func `a wildcard excludes each of its addresses, another loopback address does not`() throws {
    let lock = try PortLock(any)
    #expect(lock.address.port != 0)
    let here = SocketAddress.loopback(port: lock.address.port)
    #expect(failure(of: here) == .heldByAnotherHub(here))
    let first = try PortLock(.loopback(port: 0))
    let neighbour = try #require(SocketAddress(host: "127.0.0.77", port: first.address.port))
    #expect(failure(of: neighbour) == nil)
  }

  @Test func `a listener without the lock is found by the probe, with SO_REUSEPORT too`() throws {
    for reusePort in [false, true] {
      let loop = try EventLoop()
      let address = try loop.listen(.loopback(port: 0), reusePort: reusePort)
      #expect(failure(of: address) == .taken(address))
      let wildcard = any.with(port: address.port)
      #expect(failure(of: wildcard) == .taken(wildcard))
    }
  }

  @Test func `an address that is not this machine's is the kernel's error`() throws {
    let address = try #require(SocketAddress(host: "203.0.113.1", port: 1234))
    #expect(failure(of: address) == .system(address, SystemError(call: "bind", errno: EADDRNOTAVAIL)))
  }

  /// The lock of a port that the system gives to nobody else: it takes those from 32,768 on
  /// (`net.ipv4.ip_local_port_range`), for the hundreds of connections that other tests make meanwhile.
  private func lockOfQuietPort() throws -> PortLock {
    for _ in 0..<100 {
      do throws(PortLockError) {
        return try PortLock(.loopback(port: UInt16.random(in: 20_000..<32_000)))
      } catch {
        if case .system = error { throw error }
      }
    }
    return try PortLock(.loopback(port: 0))
  }

  /// Why the lock cannot be had; nil when it can.
  func failure(of address: SocketAddress) -> PortLockError? {
    do throws(PortLockError) {
      _ = try PortLock(address)
      return nil
    } catch {
      return error
    }
  }
}

@Suite struct `Facts` {
  @Test func `memory, time and descriptors are known`() throws {
    let resident = try #require(ProcessFacts.residentBytes())
    #expect(resident > 1_000_000 && resident < 1 << 40)
    #expect(ProcessFacts.cpuTimeNanoseconds() > 0)
    #expect(ProcessFacts.threadCPUTimeNanoseconds() <= ProcessFacts.cpuTimeNanoseconds())
    let limit = try ProcessFacts.openFileLimit()
    #expect(limit.current > 0 && limit.current <= limit.maximum)
    #expect(try ProcessFacts.raiseOpenFileLimit(to: 1) >= limit.current, "never lowered")
  }

  @Test func `an error says which call failed and why`() {
    #expect(SystemError(call: "bind", errno: EADDRINUSE).description == "bind: Address already in use (98)")
  }

  @Test func `clocks go forward and know the year`() {
    let first = ClockReading.read()
    let second = ClockReading.read()
    #expect(second.uptimeNanoseconds >= first.uptimeNanoseconds)
    #expect(first.unixMilliseconds > 1_700_000_000_000)
  }
}
